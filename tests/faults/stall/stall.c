/* LD_PRELOAD: a disk that stands still.

   RLITE_DISK_FOLDER   whose files are concerned
   RLITE_DISK_STALL    while this file is there, nothing that is to reach the disk does: fsync, fdatasync, msync, and
                       writes to a file that was opened with O_DSYNC or O_SYNC wait
   RLITE_DISK_NOTES    a line for each time that the main thread had to wait

   A stall is noticed when it begins: what is on its way is not held up. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static const char *stall, *notes;
static char folder[PATH_MAX];

__attribute__((constructor)) static void begin(void) {
    const char *where = getenv("RLITE_DISK_FOLDER");
    stall = getenv("RLITE_DISK_STALL");
    notes = getenv("RLITE_DISK_NOTES");
    if (where && !realpath(where, folder)) folder[0] = 0;
}

static int concerns(int fd) {
    char link[40], path[PATH_MAX];
    if (!stall || !folder[0] || fd < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    return !strncmp(path, folder, strlen(folder));
}

static void stand_still(const char *what) {
    int saved = errno;
    int is_noted = 0;
    while (!access(stall, F_OK)) {
        if (!is_noted && notes && syscall(SYS_gettid) == getpid()) {
            int fd = (int)syscall(SYS_openat, AT_FDCWD, notes, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
            dprintf(fd, "%s\n", what);
            syscall(SYS_close, fd);
        }
        is_noted = 1;
        struct timespec moment = {0, 2000000};
        nanosleep(&moment, NULL);
    }
    errno = saved;
}

static int is_synced(int fd) { return (fcntl(fd, F_GETFL) & (O_DSYNC | O_SYNC)) != 0 && concerns(fd); }

int fsync(int fd) { REAL(fsync); if (concerns(fd)) stand_still("fsync"); return real(fd); }
int fdatasync(int fd) { REAL(fdatasync); if (concerns(fd)) stand_still("fdatasync"); return real(fd); }
int msync(void *at, size_t size, int flags) { REAL(msync); if (stall) stand_still("msync"); return real(at, size, flags); }
ssize_t write(int fd, const void *data, size_t size) { REAL(write); if (is_synced(fd)) stand_still("write"); return real(fd, data, size); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { REAL(pwrite); if (is_synced(fd)) stand_still("pwrite"); return real(fd, data, size, at); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { REAL(pwrite64); if (is_synced(fd)) stand_still("pwrite"); return real(fd, data, size, at); }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { REAL(pwritev); if (is_synced(fd)) stand_still("pwritev"); return real(fd, parts, count, at); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) { REAL(pwritev64); if (is_synced(fd)) stand_still("pwritev"); return real(fd, parts, count, at); }
