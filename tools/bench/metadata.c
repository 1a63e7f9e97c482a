/* Calls about names and states of files below a folder: counted by kind, and each made longer by a wait.
 *
 * Loaded by LD_PRELOAD into a command and its workers, which share one struct in a mapped file (see metadata.py). A
 * file server answers such a call in a round trip. What it need not be asked for is not counted: reads and writes, the
 * state of an open file, and names that came with the listing before.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum kind { OPEN, CREATE, STAT, LIST, RENAME, LINK, UNLINK, MKDIR, RMDIR, SYNC, SYNC_FOLDER, KINDS };
enum { LISTING = 32768 }; /* the bytes of entries that one call returns: the buffer of the C library */

struct shared {
    _Atomic uint64_t calls[KINDS];
    uint64_t wait; /* microseconds */
    char folder[2048];
};

static struct shared *shared;

__attribute__((constructor)) static void load(void) {
    const char *name = getenv("METADATA_STATE");
    int file = name ? syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC, 0) : -1;
    if (file < 0) return;
    void *map = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map != MAP_FAILED) shared = map;
    syscall(SYS_close, file);
}

static int below(const char *path) {
    size_t length = strlen(shared->folder);
    return !strncmp(path, shared->folder, length) && (path[length] == '/' || !path[length]);
}

static int watched(int folder, const char *path) {
    if (!shared || !path) return 0;
    char whole[2 * PATH_MAX] = "", link[64];
    if (path[0] != '/') {
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        ssize_t length = syscall(SYS_readlink, link, whole, PATH_MAX - 2);
        if (length < 0) return 0;
        whole[length] = '/';
        whole[length + 1] = 0;
    }
    strncat(whole, path, PATH_MAX);
    return below(whole);
}

static int watched_file(int file) {
    char link[64], path[PATH_MAX];
    if (!shared) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = syscall(SYS_readlink, link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

static void count(enum kind kind) {
    int kept = errno;
    atomic_fetch_add(&shared->calls[kind], 1);
    if (shared->wait) usleep(shared->wait);
    errno = kept;
}

/* Opened. */

static int open_file(int folder, const char *path, int flags, int mode) {
    if (watched(folder, path)) count(flags & O_CREAT ? CREATE : OPEN);
    return syscall(SYS_openat, folder, path, flags, mode);
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

/* Asked for their state, or given another. */

static int state(int folder, const char *path, struct stat *status, int flags) {
    if (path && path[0] && watched(folder, path)) count(STAT);
    return syscall(SYS_newfstatat, folder, path, status, flags);
}

int stat(const char *path, struct stat *status) { return state(AT_FDCWD, path, status, 0); }
int lstat(const char *path, struct stat *status) { return state(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW); }
int fstatat(int folder, const char *path, struct stat *status, int flags) { return state(folder, path, status, flags); }
int stat64(const char *path, struct stat64 *status) { return state(AT_FDCWD, path, (struct stat *)status, 0); }
int lstat64(const char *path, struct stat64 *status) {
    return state(AT_FDCWD, path, (struct stat *)status, AT_SYMLINK_NOFOLLOW);
}
int fstatat64(int folder, const char *path, struct stat64 *status, int flags) {
    return state(folder, path, (struct stat *)status, flags);
}
int access(const char *path, int mode) {
    if (watched(AT_FDCWD, path)) count(STAT);
    return syscall(SYS_faccessat, AT_FDCWD, path, mode);
}
int utimensat(int folder, const char *path, const struct timespec times[2], int flags) {
    if (path && watched(folder, path)) count(STAT);
    return syscall(SYS_utimensat, folder, path, times, flags);
}
ssize_t readlink(const char *path, char *target, size_t size) {
    if (watched(AT_FDCWD, path)) count(STAT);
    return syscall(SYS_readlink, path, target, size);
}

/* Listed. */

DIR *opendir(const char *path) {
    DIR *(*real)(const char *) = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");
    if (watched(AT_FDCWD, path)) count(LIST);
    return real(path);
}

DIR *fdopendir(int file) {
    DIR *(*real)(int) = (DIR * (*)(int)) dlsym(RTLD_NEXT, "fdopendir");
    if (watched_file(file)) count(LIST);
    return real(file);
}

struct dirent64 *readdir64(DIR *folder) {
    static struct dirent64 *(*real)(DIR *);
    static _Thread_local size_t bytes;
    if (!real) real = (struct dirent64 * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir64");
    struct dirent64 *entry = real(folder);
    if (!entry || !shared) {
        bytes = 0;
    } else if ((bytes += entry->d_reclen) > LISTING) {
        bytes = entry->d_reclen;
        if (watched_file(dirfd(folder))) count(LIST);
    }
    return entry;
}

/* Changed. */

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    if (watched(to_folder, to)) count(RENAME);
    return syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}
int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return renameat2(from_folder, from, to_folder, to, 0);
}
int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    if (watched(to_folder, to)) count(LINK);
    return syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }
int unlinkat(int folder, const char *path, int flags) {
    if (watched(folder, path)) count(flags & AT_REMOVEDIR ? RMDIR : UNLINK);
    return syscall(SYS_unlinkat, folder, path, flags);
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int mkdirat(int folder, const char *path, mode_t mode) {
    if (watched(folder, path)) count(MKDIR);
    return syscall(SYS_mkdirat, folder, path, mode);
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

/* Brought to the disk. */

static int sync_file(int number, int file) {
    struct stat status;
    if (watched_file(file))
        count(!syscall(SYS_fstat, file, &status) && S_ISDIR(status.st_mode) ? SYNC_FOLDER : SYNC);
    return syscall(number, file);
}
int fsync(int file) { return sync_file(SYS_fsync, file); }
int fdatasync(int file) { return sync_file(SYS_fdatasync, file); }
