/* Every call that changes files below a watched folder: counted, recorded, made to fail, or made the process's last.
 *
 * Loaded by LD_PRELOAD into a build and its workers. They share one struct in a mapped file (see interposed.py), so calls
 * are numbered over all of them, and after the killing call none of them changes anything any more.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum action { COUNT, RECORD, KILL, TEAR, FAIL, FAIL_FROM, SHORT };
enum kind { CREATE = 1, WRITE, TRUNCATE, RENAME, UNLINK, MKDIR, RMDIR, SYNC, SYNC_FOLDER, LINK };
enum verdict { GO, HALF, NO };

struct shared {
    _Atomic uint64_t calls;
    uint64_t at;
    int32_t action, error, kind;
    _Atomic int32_t over, busy, parent;
    char folder[2048], record[2048];
};

struct entry {
    int64_t offset;
    uint32_t kind, path, other, data;
};

static struct shared *shared;

__attribute__((constructor)) static void load(void) {
    const char *name = getenv("DRILL_STATE");
    int file = name ? syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC, 0) : -1;
    if (file < 0) return;
    void *map = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map != MAP_FAILED) shared = map;
    syscall(SYS_close, file);
}

static void die(void) {
    if (shared->parent > 0) syscall(SYS_kill, shared->parent, SIGKILL);
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

static void end_all(void) {
    shared->over = 1;
    die();
}

/* Whether a path is watched; it is made absolute. */
static int watched(int folder, const char *path, char *whole) {
    if (!shared || !shared->folder[0] || !path) return 0;
    char base[PATH_MAX] = "", link[64];
    if (path[0] != '/') {
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, base, sizeof base - 2);
        if (length < 0) return 0;
        base[length] = '/';
        base[length + 1] = 0;
    }
    snprintf(whole, PATH_MAX, "%s%s", base, path);
    size_t length = strlen(shared->folder);
    return !strncmp(whole, shared->folder, length) && (whole[length] == '/' || !whole[length]);
}

static int watched_file(int file, char *whole) {
    char link[64], path[PATH_MAX];
    if (!shared || !shared->folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return watched(AT_FDCWD, path, whole);
}

/* What is to become of the next call. Full disks fail only what takes space. */
static enum verdict verdict(enum kind kind) {
    if (shared->over) die();
    uint64_t call = atomic_fetch_add(&shared->calls, 1) + 1;
    int due = call == shared->at;
    if (shared->action == FAIL_FROM)
        due = call >= shared->at && (kind == CREATE || kind == WRITE || kind == TRUNCATE || kind == MKDIR);
    if (!due) return GO;
    shared->kind = kind;
    if (shared->action == KILL) end_all();
    if (shared->action == TEAR || shared->action == SHORT) return HALF;
    if (shared->action == FAIL || shared->action == FAIL_FROM) {
        errno = shared->error;
        return NO;
    }
    return GO;
}

static void take_turn(void) {
    while (shared->action == RECORD && atomic_exchange(&shared->busy, 1)) usleep(10);
}

static void record(enum kind kind, const char *path, const char *other, int64_t offset, const void *data, size_t size) {
    if (shared->action != RECORD) return;
    struct entry entry = {offset, kind, strlen(path), strlen(other), size};
    struct iovec parts[] = {{&entry, sizeof entry}, {(void *)path, entry.path}, {(void *)other, entry.other}, {(void *)data, size}};
    int file = syscall(SYS_openat, AT_FDCWD, shared->record, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
    ssize_t done = syscall(SYS_writev, file, parts, 4);
    syscall(SYS_close, file);
    if (done != (ssize_t)(sizeof entry + entry.path + entry.other + size)) abort();
}

static long end_turn(long result) {
    int kept = errno;
    if (shared->action == RECORD) shared->busy = 0;
    errno = kept;
    return result;
}

/* A call about a name that is done whole or not at all. */
#define NAMED(kind, path, other, offset, call)                          \
    do {                                                                \
        enum verdict found = verdict(kind);                             \
        if (found == NO) return -1;                                     \
        take_turn();                                                    \
        long result = (call);                                           \
        if (!result) record(kind, path, other, offset, NULL, 0);        \
        if (found == HALF && shared->action == TEAR) end_all();         \
        return end_turn(result);                                        \
    } while (0)

/* Files: opened. */

static int open_file(int folder, const char *path, int flags, int mode) {
    char whole[PATH_MAX];
    struct stat status;
    if (!(flags & (O_CREAT | O_TRUNC)) || !watched(folder, path, whole))
        return syscall(SYS_openat, folder, path, flags, mode);
    int exists = !syscall(SYS_newfstatat, AT_FDCWD, whole, &status, AT_SYMLINK_NOFOLLOW);
    if (exists && !(flags & O_TRUNC)) return syscall(SYS_openat, folder, path, flags, mode);
    enum verdict found = verdict(exists ? TRUNCATE : CREATE);
    if (found == NO) return -1;
    take_turn();
    int file = syscall(SYS_openat, folder, path, flags, mode);
    if (found == HALF && shared->action == TEAR) end_all();
    if (file >= 0) record(exists ? TRUNCATE : CREATE, whole, "", 0, NULL, 0);
    return end_turn(file);
}

#define OPENED(name, parameters, folder)                                    \
    int name parameters {                                                   \
        va_list rest;                                                       \
        va_start(rest, flags);                                              \
        int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0;   \
        va_end(rest);                                                       \
        return open_file(folder, path, flags, mode);                        \
    }
OPENED(open, (const char *path, int flags, ...), AT_FDCWD)
OPENED(open64, (const char *path, int flags, ...), AT_FDCWD)
OPENED(openat, (int folder, const char *path, int flags, ...), folder)
OPENED(openat64, (int folder, const char *path, int flags, ...), folder)
int creat(const char *path, mode_t mode) { return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

/* Files: written. */

static long put(int file, const void *data, size_t size, int64_t offset) {
    return offset < 0 ? syscall(SYS_write, file, data, size) : syscall(SYS_pwrite64, file, data, size, offset);
}

static ssize_t write_at(int file, const void *data, size_t size, int64_t offset) {
    char whole[PATH_MAX];
    if (!watched_file(file, whole)) return put(file, data, size, offset);
    enum verdict found = verdict(WRITE);
    if (found == NO) return -1;
    take_turn();
    int64_t start = offset < 0 ? syscall(SYS_lseek, file, 0, SEEK_CUR) : offset;
    ssize_t done = put(file, data, found == HALF && size > 1 ? size / 2 : size, offset);
    if (found == HALF && shared->action == TEAR) end_all();
    if (done > 0) record(WRITE, whole, "", start, data, done);
    return end_turn(done);
}

ssize_t write(int file, const void *data, size_t size) { return write_at(file, data, size, -1); }
ssize_t pwrite(int file, const void *data, size_t size, off_t offset) { return write_at(file, data, size, offset); }
ssize_t pwrite64(int file, const void *data, size_t size, off64_t offset) { return write_at(file, data, size, offset); }

static ssize_t write_parts(int file, const struct iovec *parts, int count, int64_t offset) {
    char whole[PATH_MAX];
    if (!watched_file(file, whole))
        return offset < 0 ? syscall(SYS_writev, file, parts, count)
                          : syscall(SYS_pwritev, file, parts, count, (long)offset, 0L);
    ssize_t sum = 0;
    for (int part = 0; part < count; part++) {
        ssize_t done = write_at(file, parts[part].iov_base, parts[part].iov_len, offset < 0 ? -1 : offset + sum);
        if (done < 0) return sum ? sum : -1;
        sum += done;
        if ((size_t)done < parts[part].iov_len) break;
    }
    return sum;
}

ssize_t writev(int file, const struct iovec *parts, int count) { return write_parts(file, parts, count, -1); }
ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) { return write_parts(file, parts, count, at); }
ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t at) { return write_parts(file, parts, count, at); }

static int resize(int file, int64_t size, int grow) {
    char whole[PATH_MAX];
    if (!watched_file(file, whole))
        return grow ? syscall(SYS_fallocate, file, 0, 0L, size) : syscall(SYS_ftruncate, file, size);
    NAMED(TRUNCATE, whole, "", size, grow ? syscall(SYS_fallocate, file, 0, 0L, size) : syscall(SYS_ftruncate, file, size));
}

int ftruncate(int file, off_t size) { return resize(file, size, 0); }
int ftruncate64(int file, off64_t size) { return resize(file, size, 0); }
int posix_fallocate(int file, off_t offset, off_t size) { return resize(file, offset + size, 1) ? errno : 0; }
int posix_fallocate64(int file, off64_t offset, off64_t size) { return resize(file, offset + size, 1) ? errno : 0; }

/* Brought to the disk: with all that is in the file by then, as other processes and maps may have written to it. */

static int sync_file(int number, int file) {
    char whole[PATH_MAX];
    struct stat status;
    if (!watched_file(file, whole)) return syscall(number, file);
    enum verdict found = verdict(SYNC);
    if (found == NO) return -1;
    take_turn();
    int result = syscall(number, file);
    if (shared->action == RECORD && !result && !fstat(file, &status)) {
        if (S_ISDIR(status.st_mode)) {
            record(SYNC_FOLDER, whole, "", 0, NULL, 0);
        } else {
            int copy = syscall(SYS_openat, AT_FDCWD, whole, O_RDONLY | O_CLOEXEC, 0);
            void *data = malloc(status.st_size + 1);
            if (copy < 0 || syscall(SYS_pread64, copy, data, status.st_size, 0L) != status.st_size) abort();
            record(SYNC, whole, "", 0, data, status.st_size);
            free(data);
            syscall(SYS_close, copy);
        }
    }
    if (found == HALF && shared->action == TEAR) end_all();
    return end_turn(result);
}

int fsync(int file) { return sync_file(SYS_fsync, file); }
int fdatasync(int file) { return sync_file(SYS_fdatasync, file); }

/* Names. */

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    char whole[PATH_MAX], other[PATH_MAX];
    if (!watched(from_folder, from, whole) | !watched(to_folder, to, other))
        return syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
    NAMED(RENAME, whole, other, 0, syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return renameat2(from_folder, from, to_folder, to, 0);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    char whole[PATH_MAX], other[PATH_MAX];
    if (!watched(from_folder, from, whole) | !watched(to_folder, to, other))
        return syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
    NAMED(LINK, whole, other, 0, syscall(SYS_linkat, from_folder, from, to_folder, to, flags));
}

int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int unlinkat(int folder, const char *path, int flags) {
    char whole[PATH_MAX];
    if (!watched(folder, path, whole)) return syscall(SYS_unlinkat, folder, path, flags);
    NAMED(flags & AT_REMOVEDIR ? RMDIR : UNLINK, whole, "", 0, syscall(SYS_unlinkat, folder, path, flags));
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdirat(int folder, const char *path, mode_t mode) {
    char whole[PATH_MAX];
    if (!watched(folder, path, whole)) return syscall(SYS_mkdirat, folder, path, mode);
    NAMED(MKDIR, whole, "", 0, syscall(SYS_mkdirat, folder, path, mode));
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
