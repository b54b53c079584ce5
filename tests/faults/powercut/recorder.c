/* LD_PRELOAD: a log of what a process does to the files of one folder, and of what it has brought to the disk.

   RLITE_DISK_FOLDER   whose files are recorded
   RLITE_DISK_LOG      the log; several processes may append to it, each record in one write
   RLITE_DISK_BOOT     if it is there, a file that is read in the place of the kernel's boot id

   A record: kind u8 | path bytes u16 | data bytes u32 | offset u64 | time ns u64 | path | data
     W  written to the file (logged behind the call, before the program goes on)
     T  its size is `offset` now
     B  a sync begins; `offset` is its number                         E  that sync has ended: what was logged before its B
     D  O_DSYNC: about to be written and synced                         F  that is on the disk
     U  unlinked     R  renamed, data is the new path     M  made     K  a folder, made
   A folder's sync is logged by its path, that of RLITE_DISK_FOLDER itself by "".
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int log_fd = -1;
static char folder[PATH_MAX];
static size_t folder_bytes;

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
    const char *log = getenv("RLITE_DISK_LOG"), *where = getenv("RLITE_DISK_FOLDER");
    if (!log || !where || !realpath(where, folder)) return;
    folder_bytes = strlen(folder);
    log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

static uint64_t record(char kind, const char *path, uint64_t offset, const struct iovec *parts, int count, size_t limit) {
    unsigned char head[23];
    struct timespec now;
    struct iovec all[1026];
    size_t size = 0;
    int n = 2;
    int saved = errno;
    for (int i = 0; i < count && size < limit; i++) {
        size_t part = parts[i].iov_len < limit - size ? parts[i].iov_len : limit - size;
        all[n].iov_base = parts[i].iov_base;
        all[n++].iov_len = part;
        size += part;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint16_t path_bytes = (uint16_t)strlen(path);
    uint32_t data_bytes = (uint32_t)size;
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    head[0] = (unsigned char)kind;
    memcpy(head + 1, &path_bytes, 2);
    memcpy(head + 3, &data_bytes, 4);
    memcpy(head + 7, &offset, 8);
    memcpy(head + 15, &ns, 8);
    all[0] = (struct iovec){head, sizeof head};
    all[1] = (struct iovec){(void *)path, path_bytes};
    if (syscall(SYS_writev, log_fd, all, n) < 0) abort();
    errno = saved;
    return ns;
}

/* Its path in the folder, or NULL if it is not in there. */
static const char *inside(const char *path) {
    if (log_fd < 0 || strncmp(path, folder, folder_bytes)) return NULL;
    return path[folder_bytes] == '/' ? path + folder_bytes + 1 : path[folder_bytes] ? NULL : path + folder_bytes;
}

static const char *of_fd(int fd, char *buffer) {
    char link[40];
    if (log_fd < 0 || fd < 0) return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int saved = errno;
    ssize_t n = readlink(link, buffer, PATH_MAX - 1);
    errno = saved;
    if (n <= 0) return NULL;
    buffer[n] = 0;
    return inside(buffer);
}

static const char *of_path(const char *path, char *buffer) {
    char copy[PATH_MAX];
    if (log_fd < 0 || !path) return NULL;
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (!slash || n >= PATH_MAX) return NULL;
    memcpy(copy, path, n);
    copy[n] = 0;
    int saved = errno;
    char *whole = realpath(copy, buffer);
    errno = saved;
    if (!whole || strlen(buffer) + strlen(slash) >= PATH_MAX) return NULL;
    strcat(buffer, slash);
    return inside(buffer);
}

static int is_dsync(int fd) { return (fcntl(fd, F_GETFL) & O_DSYNC) != 0; }

static ssize_t written(int fd, const char *path, uint64_t at, const struct iovec *parts, int count, ssize_t done) {
    if (done > 0) record('W', path, at, parts, count, (size_t)done);
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(pwrite);
    char buffer[PATH_MAX];
    const char *path = of_fd(fd, buffer);
    struct iovec part = {(void *)data, size};
    if (path && is_dsync(fd)) {
        record('D', path, (uint64_t)at, &part, 1, size);
        ssize_t done = real(fd, data, size, at);
        record('F', path, (uint64_t)at, NULL, 0, 0);
        return done;
    }
    ssize_t done = real(fd, data, size, at);
    return path ? written(fd, path, (uint64_t)at, &part, 1, done) : done;
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { return pwrite(fd, data, size, at); }

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    REAL(pwritev);
    char buffer[PATH_MAX];
    const char *path = of_fd(fd, buffer);
    ssize_t done = real(fd, parts, count, at);
    return path ? written(fd, path, (uint64_t)at, parts, count, done) : done;
}
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) { return pwritev(fd, parts, count, at); }

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    char buffer[PATH_MAX];
    const char *path = of_fd(fd, buffer);
    ssize_t done = real(fd, data, size);
    if (!path || done <= 0) return done;
    struct iovec part = {(void *)data, size};
    off_t end = lseek(fd, 0, SEEK_CUR);
    return end < 0 ? done : written(fd, path, (uint64_t)(end - done), &part, 1, done);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    char buffer[PATH_MAX];
    const char *path = of_fd(fd, buffer);
    ssize_t done = real(fd, parts, count);
    if (!path || done <= 0) return done;
    off_t end = lseek(fd, 0, SEEK_CUR);
    return end < 0 ? done : written(fd, path, (uint64_t)(end - done), parts, count, done);
}

int ftruncate(int fd, off_t size) {
    REAL(ftruncate);
    char buffer[PATH_MAX];
    const char *path = of_fd(fd, buffer);
    int result = real(fd, size);
    if (path && !result) record('T', path, (uint64_t)size, NULL, 0, 0);
    return result;
}
int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

/* A hole is zeros that are written there. */
int fallocate(int fd, int mode, off_t at, off_t size) {
    REAL(fallocate);
    static const char zeros[65536];
    char buffer[PATH_MAX];
    const char *path = mode & FALLOC_FL_PUNCH_HOLE ? of_fd(fd, buffer) : NULL;
    int result = real(fd, mode, at, size);
    for (off_t done = 0; path && !result && done < size;) {
        size_t part = (size_t)(size - done) < sizeof zeros ? (size_t)(size - done) : sizeof zeros;
        struct iovec hole = {(void *)zeros, part};
        record('W', path, (uint64_t)(at + done), &hole, 1, part);
        done += (off_t)part;
    }
    return result;
}
int fallocate64(int fd, int mode, off64_t at, off64_t size) { return fallocate(fd, mode, at, size); }

int truncate(const char *name, off_t size) {
    REAL(truncate);
    char buffer[PATH_MAX];
    const char *path = of_path(name, buffer);
    int result = real(name, size);
    if (path && !result) record('T', path, (uint64_t)size, NULL, 0, 0);
    return result;
}
int truncate64(const char *name, off64_t size) { return truncate(name, size); }

static int synced(int fd, int (*sync)(int)) {
    char buffer[PATH_MAX];
    const char *path = of_fd(fd, buffer);
    if (!path) return sync(fd);
    uint64_t number = record('B', path, 0, NULL, 0, 0);
    int result = sync(fd);
    if (!result) record('E', path, number, NULL, 0, 0);
    return result;
}

int fsync(int fd) { REAL(fsync); return synced(fd, real); }
int fdatasync(int fd) { REAL(fdatasync); return synced(fd, real); }

int unlink(const char *name) {
    REAL(unlink);
    char buffer[PATH_MAX];
    const char *path = of_path(name, buffer);
    int result = real(name);
    if (path && !result) record('U', path, 0, NULL, 0, 0);
    return result;
}

int mkdir(const char *name, mode_t mode) {
    REAL(mkdir);
    char buffer[PATH_MAX];
    const char *path = of_path(name, buffer);
    int result = real(name, mode);
    if (path && !result) record('K', path, 0, NULL, 0, 0);
    return result;
}

int rename(const char *from, const char *to) {
    REAL(rename);
    char buffer[PATH_MAX], other[PATH_MAX];
    const char *path = of_path(from, buffer), *new_path = of_path(to, other);
    int result = real(from, to);
    if (path && new_path && !result) {
        struct iovec part = {(void *)new_path, strlen(new_path)};
        record('R', path, 0, &part, 1, part.iov_len);
    }
    return result;
}

static int opened(int fd, int flags) {
    char buffer[PATH_MAX];
    const char *path = fd >= 0 && (flags & (O_CREAT | O_TRUNC)) ? of_fd(fd, buffer) : NULL;
    if (path) record(flags & O_TRUNC ? 'T' : 'M', path, 0, NULL, 0, 0);
    return fd;
}

#define MODE(flags) int mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, int); va_end(more); }
static const char *booted(const char *name) {
    const char *boot = getenv("RLITE_DISK_BOOT");
    return boot && name && !strcmp(name, "/proc/sys/kernel/random/boot_id") ? boot : name;
}
int open(const char *name, int flags, ...) { MODE(flags) name = booted(name); return opened((int)syscall(SYS_openat, AT_FDCWD, name, flags, mode), flags); }
int open64(const char *name, int flags, ...) { MODE(flags) name = booted(name); return opened((int)syscall(SYS_openat, AT_FDCWD, name, flags | O_LARGEFILE, mode), flags); }
int openat(int at, const char *name, int flags, ...) { MODE(flags) return opened((int)syscall(SYS_openat, at, name, flags, mode), flags); }
int openat64(int at, const char *name, int flags, ...) { MODE(flags) return opened((int)syscall(SYS_openat, at, name, flags | O_LARGEFILE, mode), flags); }
