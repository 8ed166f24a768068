/* Preloaded into a broker: while the file named by FAIL_WHEN exists, fsync and fdatasync fail with EIO.

   Every failure, and every call that comes after the first one, adds a byte to the file named by
   FAIL_COUNT: a broker that tries again shows. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int failing(void)
{
    const char *when = getenv("FAIL_WHEN"), *count = getenv("FAIL_COUNT");
    if (!when || !count || access(when, F_OK) != 0)
        return 0;
    int file = open(count, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file >= 0) {
        if (write(file, "x", 1) != 1)
            abort();
        close(file);
    }
    errno = EIO;
    return 1;
}

int fsync(int file)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return failing() ? -1 : real(file);
}

int fdatasync(int file)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    return failing() ? -1 : real(file);
}
