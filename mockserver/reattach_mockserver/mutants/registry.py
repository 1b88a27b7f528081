"""`SERVER_MUTANTS`: every wrong server by its id; and what to say to whoever asks for one that is not there."""

import difflib
from collections.abc import Iterable, Mapping

from reattach_mockserver.mutants.asks_for_days import AsksForDays
from reattach_mockserver.mutants.beats_with_ids import BeatsWithIds
from reattach_mockserver.mutants.begins_live import BeginsLive
from reattach_mockserver.mutants.binds_to_token import BindsToToken
from reattach_mockserver.mutants.buffers import Buffers
from reattach_mockserver.mutants.cancels_nothing import CancelsNothing
from reattach_mockserver.mutants.checks_then_inserts import ChecksThenInserts
from reattach_mockserver.mutants.claims_too_much import ClaimsTooMuch
from reattach_mockserver.mutants.closes_in_silence import ClosesInSilence
from reattach_mockserver.mutants.closes_inside_event import ClosesInsideEvent
from reattach_mockserver.mutants.contradicts_its_stream import ContradictsItsStream
from reattach_mockserver.mutants.creates_on_attach import CreatesOnAttach
from reattach_mockserver.mutants.ends_at_limit import EndsAtLimit
from reattach_mockserver.mutants.ends_when_left import EndsWhenLeft
from reattach_mockserver.mutants.fails_second_cancel import FailsSecondCancel
from reattach_mockserver.mutants.forgets_key_at_end import ForgetsKeyAtEnd
from reattach_mockserver.mutants.forgets_with_events import ForgetsWithEvents
from reattach_mockserver.mutants.goes_back import GoesBack
from reattach_mockserver.mutants.has_no_discovery import HasNoDiscovery
from reattach_mockserver.mutants.has_no_heartbeat import HasNoHeartbeat
from reattach_mockserver.mutants.has_no_preflight import HasNoPreflight
from reattach_mockserver.mutants.has_one_principal import HasOnePrincipal
from reattach_mockserver.mutants.hides_failure import HidesFailure
from reattach_mockserver.mutants.hides_what_is_ahead import HidesWhatIsAhead
from reattach_mockserver.mutants.ignores_body import IgnoresBody
from reattach_mockserver.mutants.ignores_cursor import IgnoresCursor
from reattach_mockserver.mutants.ignores_key import IgnoresKey
from reattach_mockserver.mutants.ignores_query import IgnoresQuery
from reattach_mockserver.mutants.inclusive_resume import InclusiveResume
from reattach_mockserver.mutants.jumps_over_expired import JumpsOverExpired
from reattach_mockserver.mutants.keeps_five import KeepsFive
from reattach_mockserver.mutants.leaves_ids_out import LeavesIdsOut
from reattach_mockserver.mutants.lists_one_action import ListsOneAction
from reattach_mockserver.mutants.loses_at_page_edge import LosesAtPageEdge
from reattach_mockserver.mutants.loses_at_seam import LosesAtSeam
from reattach_mockserver.mutants.may_be_buffered import MayBeBuffered
from reattach_mockserver.mutants.may_be_cached import MayBeCached
from reattach_mockserver.mutants.mixes_runs import MixesRuns
from reattach_mockserver.mutants.moves_by_control import MovesByControl
from reattach_mockserver.mutants.numbers_per_connection import NumbersPerConnection
from reattach_mockserver.mutants.refuses_all_alike import RefusesAllAlike
from reattach_mockserver.mutants.refuses_with_200 import RefusesWith200
from reattach_mockserver.mutants.renders_again import RendersAgain
from reattach_mockserver.mutants.reorders_producers import ReordersProducers
from reattach_mockserver.mutants.repeats_at_seam import RepeatsAtSeam
from reattach_mockserver.mutants.resumes_at_tail import ResumesAtTail
from reattach_mockserver.mutants.resumes_with_nothing import ResumesWithNothing
from reattach_mockserver.mutants.sends_nul import SendsNul
from reattach_mockserver.mutants.sends_page_on_resume import SendsPageOnResume
from reattach_mockserver.mutants.serves_old_epoch import ServesOldEpoch
from reattach_mockserver.mutants.settles_late import SettlesLate
from reattach_mockserver.mutants.settles_twice import SettlesTwice
from reattach_mockserver.mutants.skips_one import SkipsOne
from reattach_mockserver.mutants.snapshot_is_stale import SnapshotIsStale
from reattach_mockserver.mutants.spoils_characters import SpoilsCharacters
from reattach_mockserver.mutants.status_stands_still import StatusStandsStill
from reattach_mockserver.mutants.stays_open import StaysOpen
from reattach_mockserver.mutants.swaps_on_replay import SwapsOnReplay
from reattach_mockserver.mutants.takes_foreign import TakesForeign
from reattach_mockserver.mutants.takes_garbage import TakesGarbage
from reattach_mockserver.mutants.waits_for_reader import WaitsForReader
from reattach_mockserver.mutants.withholds_end import WithholdsEnd
from reattach_mockserver.mutants.works_for_watchers import WorksForWatchers
from reattach_mockserver.mutants.wrong import WrongServer

_ALL: tuple[type[WrongServer], ...] = (
    AsksForDays,
    BeatsWithIds,
    BeginsLive,
    BindsToToken,
    Buffers,
    CancelsNothing,
    ChecksThenInserts,
    ClaimsTooMuch,
    ClosesInSilence,
    ClosesInsideEvent,
    ContradictsItsStream,
    CreatesOnAttach,
    EndsAtLimit,
    EndsWhenLeft,
    FailsSecondCancel,
    ForgetsKeyAtEnd,
    ForgetsWithEvents,
    GoesBack,
    HasNoDiscovery,
    HasNoHeartbeat,
    HasNoPreflight,
    HasOnePrincipal,
    HidesFailure,
    HidesWhatIsAhead,
    IgnoresBody,
    IgnoresCursor,
    IgnoresKey,
    IgnoresQuery,
    InclusiveResume,
    JumpsOverExpired,
    KeepsFive,
    LeavesIdsOut,
    ListsOneAction,
    LosesAtPageEdge,
    LosesAtSeam,
    MayBeBuffered,
    MayBeCached,
    MixesRuns,
    MovesByControl,
    NumbersPerConnection,
    RefusesAllAlike,
    RefusesWith200,
    RendersAgain,
    ReordersProducers,
    RepeatsAtSeam,
    ResumesAtTail,
    ResumesWithNothing,
    SendsNul,
    SendsPageOnResume,
    ServesOldEpoch,
    SettlesLate,
    SettlesTwice,
    SkipsOne,
    SnapshotIsStale,
    SpoilsCharacters,
    StatusStandsStill,
    StaysOpen,
    SwapsOnReplay,
    TakesForeign,
    TakesGarbage,
    WaitsForReader,
    WithholdsEnd,
    WorksForWatchers,
)

SERVER_MUTANTS: Mapping[str, type[WrongServer]] = {mutant.id: mutant for mutant in _ALL}
"""Id → wrong server."""


class UnknownMutant(ValueError):
    """There is no mutant of this id; says which is meant, perhaps, and which there are: a line for each kind.

    Args:
        name: What was asked for.
        known: Kind → the ids of that kind.
    """

    def __init__(self, name: str, **known: Iterable[str]) -> None:
        groups = {kind: list(ids) for kind, ids in known.items()}
        near = difflib.get_close_matches(name, [each for ids in groups.values() for each in ids], n=1, cutoff=0.5)
        meant = f" Did you mean {near[0]}?" if near else ""
        lines = [f"{kind}: {', '.join(ids)}" for kind, ids in groups.items()]
        super().__init__("\n".join([f"--mutant {name}: there is none of that name.{meant} There are", *lines]))


def server_mutant(name: str) -> type[WrongServer]:
    """Return the wrong server of an id.

    Raises:
        UnknownMutant: There is none.
    """
    if name not in SERVER_MUTANTS:
        raise UnknownMutant(name, servers=SERVER_MUTANTS)
    return SERVER_MUTANTS[name]
