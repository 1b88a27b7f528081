-- A journal as version 1 of the schema wrote it: a run with a gap and a mark, an unanswered start, a run to repair.
BEGIN TRANSACTION;
CREATE TABLE reattach_batches (
        run INTEGER NOT NULL,
        batch INTEGER NOT NULL,  -- the position of its last event
        first INTEGER NOT NULL,  -- the position of its first event
        events TEXT NOT NULL,    -- a JSON array
        committed_at TEXT NOT NULL,
        PRIMARY KEY (run, batch)
    );
INSERT INTO "reattach_batches" VALUES(1,2,1,'[{"id":"e1","type":"text.delta","kind":"text","text":"word 1 ","cursor":"e1.1","sequence":1,"digest":"00c11b8aebe69538","event":{"id": "e1", "type": "text.delta", "data": {"text": "word 1 "}}},{"id":"e2","type":"text.delta","kind":"text","text":"word 2 ","cursor":"e1.2","sequence":2,"digest":"6bccf261388f49fd","event":{"id": "e2", "type": "text.delta", "data": {"text": "word 2 "}}}]','2023-11-14T22:13:20.000000Z');
INSERT INTO "reattach_batches" VALUES(1,4,4,'[{"id":"e13","type":"text.delta","kind":"text","text":"word 13 ","cursor":"e1.13","sequence":13,"digest":"8afa5e3bc2629f65","event":{"id": "e13", "type": "text.delta", "data": {"text": "word 13 "}}}]','2023-11-14T22:13:20.000000Z');
CREATE TABLE reattach_gaps (
        run INTEGER NOT NULL,
        at INTEGER NOT NULL,  -- the position that it takes
        reason TEXT NOT NULL, after TEXT, until TEXT, missing INTEGER, snapshot TEXT,
        noticed_at TEXT NOT NULL,
        PRIMARY KEY (run, at)
    );
INSERT INTO "reattach_gaps" VALUES(1,3,'expired','e1.2','e1.12',9,'{"text": "so far"}','2023-11-14T22:13:20.000000Z');
CREATE TABLE reattach_leases (
        run INTEGER NOT NULL, consumer TEXT NOT NULL,
        holder TEXT, since TEXT NOT NULL, token INTEGER NOT NULL, expires_at TEXT,
        PRIMARY KEY (run, consumer)
    );
INSERT INTO "reattach_leases" VALUES(1,'',NULL,'2023-11-14T22:13:20.000000Z',1,NULL);
INSERT INTO "reattach_leases" VALUES(1,'main',NULL,'2023-11-14T22:13:20.000000Z',1,NULL);
CREATE TABLE reattach_marks (
        run INTEGER NOT NULL, consumer TEXT NOT NULL,
        applied INTEGER NOT NULL,  -- a position
        cursor TEXT, cursor_id TEXT,
        updated_at TEXT NOT NULL,
        PRIMARY KEY (run, consumer)
    );
INSERT INTO "reattach_marks" VALUES(1,'main',2,NULL,NULL,'2023-11-14T22:13:20.000000Z');
CREATE TABLE reattach_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "reattach_meta" VALUES('schema','1');
INSERT INTO "reattach_meta" VALUES('journal','2d4aab65ca38b6be154974830d848e85');
CREATE TABLE reattach_runs (
        run INTEGER PRIMARY KEY AUTOINCREMENT,
        server TEXT NOT NULL, profile TEXT NOT NULL,
        run_id TEXT, key TEXT, session_id TEXT, continues TEXT,
        status TEXT NOT NULL,
        incarnation INTEGER NOT NULL DEFAULT 1,
        epoch TEXT, cursor TEXT, cursor_id TEXT, last_sequence INTEGER NOT NULL DEFAULT 0,
        head INTEGER, again_to INTEGER,
        needs TEXT NOT NULL DEFAULT '',
        request TEXT, request_sha256 TEXT, sent_at TEXT,
        outcome TEXT, handed_out INTEGER NOT NULL DEFAULT 0,
        resume_with TEXT,
        created_at TEXT NOT NULL, settled_at TEXT, updated_at TEXT NOT NULL,
        UNIQUE (server, profile, key), UNIQUE (server, profile, run_id)
    );
INSERT INTO "reattach_runs" VALUES(1,'http://127.0.0.1:8700','native','run_1','order-41','s_1',NULL,'completed',2,'e1','e1.13','e13',13,NULL,NULL,'',NULL,'sha-1','2023-11-14T22:13:20.000000Z','{"status":"completed","result":"ok","problem":{},"required_actions":[],"operations":[],"release":null,"evidence":"event"}',1,NULL,'2023-11-14T22:13:20.000000Z','2023-11-14T22:13:20.000000Z','2023-11-14T22:13:20.000000Z');
INSERT INTO "reattach_runs" VALUES(2,'http://127.0.0.1:8700','native',NULL,'order-42',NULL,NULL,'unknown',1,NULL,NULL,NULL,0,NULL,NULL,'','{"input":2}','sha-2','2023-11-14T22:13:20.000000Z',NULL,0,NULL,'2023-11-14T22:13:20.000000Z',NULL,'2023-11-14T22:13:20.000000Z');
INSERT INTO "reattach_runs" VALUES(3,'http://127.0.0.1:8700','native','run_3',NULL,NULL,NULL,'unknown',1,NULL,NULL,NULL,0,NULL,NULL,'repair',NULL,NULL,NULL,NULL,0,NULL,'2023-11-14T22:13:20.000000Z',NULL,'2023-11-14T22:13:20.000000Z');
CREATE TABLE reattach_seen (
        run INTEGER NOT NULL, epoch TEXT NOT NULL, dedupe TEXT NOT NULL, sha256 BLOB NOT NULL,
        PRIMARY KEY (run, epoch, dedupe)
    );
CREATE VIEW reattach_events (run_id, key, position, cursor, id, type, text, data, committed_at) AS
    SELECT r.run_id, r.key, b.first + e.key,
        json_extract(e.value, '$.cursor'), json_extract(e.value, '$.id'), json_extract(e.value, '$.type'),
        coalesce(json_extract(e.value, '$.text'), ''),
        CASE WHEN json_type(e.value, '$.event') IS NULL
             THEN json_extract(e.value, '$.data') ELSE json_extract(e.value, '$.event.data') END,
        b.committed_at
    FROM reattach_batches AS b JOIN reattach_runs AS r ON r.run = b.run, json_each(b.events) AS e;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('reattach_runs',3);
COMMIT;
