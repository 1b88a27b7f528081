/* A disk that fails or a process that dies at the n-th call that changes a file: preloaded, so that it is below everything.
 *
 * Counted are calls that write, flush, cut, make, rename or remove files below one folder; reading is not. `faults_arm` begins to
 * count at 1. What the n-th call does is one of the modes below; every other call is the system's own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { OFF, ERROR, ERROR_FROM_HERE, SHORT, KILL_BEFORE, KILL_AFTER, KILL_TORN };

static atomic_long calls;
static long at;
static int mode = OFF, error;
static char folder[4096];
static atomic_int fired;

void faults_arm(const char *below, long number, int what, int code) {
    strncpy(folder, below, sizeof folder - 1);
    at = number;
    error = code;
    fired = 0;
    calls = 0;
    mode = what;
}
long faults_calls(void) { return calls; }
int faults_fired(void) { return fired; }

static void die(void) {
    syscall(SYS_kill, (pid_t)syscall(SYS_getpid), SIGKILL);
    for (;;) pause();
}

static int below(const char *path) { return path && folder[0] && !strncmp(path, folder, strlen(folder)); }

static int is_file(int fd) {
    char link[64], path[4096];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

/* What becomes of this call: 0 the system's own, 1 it fails now, 2 it dies after it, 3 only half of it is done. */
static int due(int counted, int writing) {
    if (mode == OFF || !counted) return 0;
    long number = ++calls;
    if (mode == SHORT && number == at + 1) { errno = error; return 1; }  /* a full disk: less than asked, then nothing */
    if (number != at && !(mode == ERROR_FROM_HERE && number > at)) return 0;
    fired = 1;
    switch (mode) {
        case KILL_BEFORE: die();
        case KILL_AFTER: return 2;
        case KILL_TORN: if (!writing) die(); return 3;
        case SHORT:
            if (writing) return 3;
            mode = OFF;
    }
    errno = error;
    return 1;
}

#define NEXT(name) __typeof__(&name) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define DO(result, counted, call) \
    switch (due(counted, 0)) { \
        case 1: return -1; \
        case 2: call; die(); \
        default: return call; \
    }
#define WRITE(counted, length, call, half) \
    switch (due(counted, (length) > 1)) { \
        case 1: return -1; \
        case 2: call; die(); \
        case 3: { ssize_t done = half; if (mode == KILL_TORN) die(); return done; } \
        default: return call; \
    }

ssize_t write(int fd, const void *data, size_t n) {
    NEXT(write);
    WRITE(is_file(fd), n, next(fd, data, n), next(fd, data, n / 2))
}
ssize_t pwrite(int fd, const void *data, size_t n, off_t o) {
    NEXT(pwrite);
    WRITE(is_file(fd), n, next(fd, data, n, o), next(fd, data, n / 2, o))
}
ssize_t pwrite64(int fd, const void *data, size_t n, off64_t o) {
    NEXT(pwrite64);
    WRITE(is_file(fd), n, next(fd, data, n, o), next(fd, data, n / 2, o))
}
int fsync(int fd) { NEXT(fsync); DO(int, is_file(fd), next(fd)) }
int fdatasync(int fd) { NEXT(fdatasync); DO(int, is_file(fd), next(fd)) }
int ftruncate(int fd, off_t n) { NEXT(ftruncate); DO(int, is_file(fd), next(fd, n)) }
int ftruncate64(int fd, off64_t n) { NEXT(ftruncate64); DO(int, is_file(fd), next(fd, n)) }
int fchmod(int fd, mode_t m) { NEXT(fchmod); DO(int, is_file(fd), next(fd, m)) }
int chmod(const char *path, mode_t m) { NEXT(chmod); DO(int, below(path), next(path, m)) }
int unlink(const char *path) { NEXT(unlink); DO(int, below(path), next(path)) }
int rename(const char *from, const char *to) { NEXT(rename); DO(int, below(to), next(from, to)) }
int msync(void *p, size_t n, int flags) { NEXT(msync); DO(int, 0, next(p, n, flags)) }

#define MAKING(flags) ((flags) & O_CREAT)
int open(const char *path, int flags, ...) {
    NEXT(open);
    va_list more; va_start(more, flags); mode_t m = va_arg(more, mode_t); va_end(more);
    DO(int, MAKING(flags) && below(path), next(path, flags, m))
}
int open64(const char *path, int flags, ...) {
    NEXT(open64);
    va_list more; va_start(more, flags); mode_t m = va_arg(more, mode_t); va_end(more);
    DO(int, MAKING(flags) && below(path), next(path, flags, m))
}
