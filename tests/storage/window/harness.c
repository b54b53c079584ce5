/* The window's core without Python, for what Python's lock would hide.

    harness threads FILE    a writer and readers as threads, for ThreadSanitizer: every answer is checked
    harness kills FILE      a writer that is killed at every STEP in turn; another one goes on

   Commit c writes key c mod KEYS and key KEYS + (c mod 3); the value is c. So whoever knows how many commits a snapshot
   has knows what each key's value is. */

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

static int die_at = -1, times_left;
static void step(int number);
#define STEP(number) step(number)
static ssize_t write_log(int fd, const void *bytes, size_t size, off_t at);
#define WRITE_LOG write_log

#include "core.h"
#include "view.h"

enum { KEYS = 97, FAST = 3, LOG_BYTES = 1 << 20, SLOTS = 1 << 13 };

static uint8_t *writable; /* threads write through the mapping, so that the sanitizer sees it */

static void step(int number)
{
    if (number == die_at && !times_left--)
        kill(getpid(), SIGKILL);
}

static ssize_t write_log(int fd, const void *bytes, size_t size, off_t at)
{
    if (writable)
        return memcpy(writable + at, bytes, size), (ssize_t)size;
    if (die_at == 7 && size > 1 && !times_left--) { /* cut off in the middle of the write */
        if (pwrite(fd, bytes, size / 2, at) < 0)
            abort();
        kill(getpid(), SIGKILL);
    }
    return pwrite(fd, bytes, size, at);
}

#define CHECK(what)                                                           \
    do {                                                                      \
        if (!(what)) {                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
            exit(1);                                                          \
        }                                                                     \
    } while (0)

static Window made(const char *path)
{
    Window window = {.log_bytes = LOG_BYTES, .slots = SLOTS, .number = 3, .seed = {1, 2}};
    window.log_fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(window.log_fd >= 0 && !ftruncate(window.log_fd, LOG_HEAD_BYTES));
    window.log = mmap(NULL, LOG_BYTES, PROT_READ, MAP_SHARED, window.log_fd, 0);
    window.index = mmap(NULL, INDEX_HEAD_BYTES + SLOTS * 8, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(window.log != MAP_FAILED && window.index != MAP_FAILED);
    *word_at(&window, TIP) = tip_of(0, LOG_HEAD_BYTES);
    *word_at(&window, PENDING) = *word_at(&window, INDEXED) = LOG_HEAD_BYTES;
    return window;
}

static size_t name(char *key, uint64_t number) { return (size_t)sprintf(key, "%ckey%03lu", number % 2 ? 'a' : 'b', number); }

static int append(Window *window, uint64_t commit)
{
    char keys[2][16], value[24];
    uint64_t numbers[2] = {commit % KEYS, KEYS + commit % FAST};
    Row rows[2];
    for (int row = 0; row < 2; row++) {
        rows[row].key_bytes = (uint16_t)name(keys[row], numbers[row]);
        rows[row].key = (uint8_t *)keys[row];
        rows[row].value = (uint8_t *)value;
        rows[row].value_bytes = commit % 11 ? (uint32_t)sprintf(value, "%lu", commit) : REMOVED;
    }
    return window_append(window, rows, 2, commit, 0);
}

static uint64_t expected(uint64_t commits, uint64_t number)
{
    uint64_t every = number < KEYS ? KEYS : FAST, rest = number < KEYS ? number : number - KEYS;
    for (uint64_t commit = commits; commit; commit--)
        if (commit % every == rest)
            return commit;
    return 0;
}

static void check_key(const Window *window, uint64_t tip, uint64_t number)
{
    char key[16];
    size_t size = name(key, number);
    uint64_t commit = expected(commits_of(tip), number), row = window_get(window, end_of(tip), (uint8_t *)key, size);
    CHECK((row != 0) == (commit != 0));
    if (!row)
        return;
    CHECK(row < end_of(tip));
    uint32_t bytes = row_value_bytes(window, row);
    CHECK((bytes == REMOVED) == (commit % 11 == 0));
    if (bytes != REMOVED) {
        char value[24] = {0};
        memcpy(value, row_value(window, row), bytes < 23 ? bytes : 23);
        CHECK(strtoul(value, NULL, 10) == commit);
    }
}

static void leave(View *view)
{
    free(view->old.places), free(view->young.places);
}

static void check_walk(View *view, uint64_t tip)
{
    uint8_t key[MOST_KEY_BYTES];
    size_t size = 0, keys = 0;
    CHECK(!view_look(view, end_of(tip)));
    for (uint64_t row = view_next(view, end_of(tip), key, 0, 0); row; row = view_next(view, end_of(tip), key, size, 1)) {
        CHECK(row < end_of(tip) && compare_keys(key, size, row_key(view->window, row), row_key_bytes(view->window, row)) < 0);
        size = row_key_bytes(view->window, row), keys++;
        memcpy(key, row_key(view->window, row), size);
    }
    uint64_t wanted = 0;
    for (uint64_t number = 0; number < KEYS + FAST; number++)
        wanted += number % 2 && expected(commits_of(tip), number);
    CHECK(keys == wanted);
    for (uint64_t row = view_previous(view, end_of(tip), NULL, 0, 0); row; keys--, row = view_previous(view, end_of(tip), key, size, 0)) {
        size = row_key_bytes(view->window, row);
        memcpy(key, row_key(view->window, row), size);
    }
    CHECK(!keys);
}

/* -- threads */

static Window shared;
static uint64_t commits, is_over;

static void *read_all(void *seed)
{
    unsigned state = (unsigned)(uintptr_t)seed;
    View view = {.window = &shared, .database = 'a', .seen = LOG_HEAD_BYTES};
    uint64_t held = load(word_at(&shared, TIP)), rounds = 0;
    while (!load(&is_over)) {
        uint64_t tip = load(word_at(&shared, TIP));
        for (int key = 0; key < 20; key++) {
            check_key(&shared, tip, (uint64_t)rand_r(&state) % (KEYS + FAST));
            check_key(&shared, held, (uint64_t)rand_r(&state) % (KEYS + FAST));
        }
        if (++rounds % 16 == 0)
            check_walk(&view, tip), held = tip;
    }
    check_walk(&view, load(word_at(&shared, TIP)));
    leave(&view);
    return NULL;
}

static int threads(const char *path)
{
    pthread_t readers[3];
    shared = made(path);
    CHECK(!ftruncate(shared.log_fd, LOG_BYTES));
    writable = mmap(NULL, LOG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, shared.log_fd, 0);
    CHECK(writable != MAP_FAILED);
    shared.log = writable; /* one mapping: the sanitizer knows memory by its address */
    for (uintptr_t reader = 0; reader < 3; reader++)
        CHECK(!pthread_create(&readers[reader], NULL, read_all, (void *)(reader + 1)));
    for (commits = 1; append(&shared, commits) != WINDOW_FULL; commits++)
        ;
    store(&is_over, 1);
    for (int reader = 0; reader < 3; reader++)
        CHECK(!pthread_join(readers[reader], NULL));
    printf("%lu commits, read by 3 threads\n", commits - 1);
    return 0;
}

/* -- kills */

static int kills(const char *path)
{
    Window window = made(path);
    uint64_t *acknowledged = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned died = 0, kept = 0;
    for (int round = 0; round < 40 * 8; round++) {
        int where = round % 8, status;
        pid_t writer = fork();
        CHECK(writer >= 0);
        if (!writer) {
            die_at = where, times_left = round / 8 % 5;
            for (uint64_t commit = commits_of(load(word_at(&window, TIP))) + 1;; commit++) {
                CHECK(append(&window, commit) == 0);
                store(acknowledged, commit);
            }
        }
        CHECK(waitpid(writer, &status, 0) == writer && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        uint64_t tip = load(word_at(&window, TIP));
        CHECK(commits_of(tip) >= *acknowledged); /* a reader takes no lock, and repairs nothing */
        for (uint64_t number = 0; number < KEYS + FAST; number++)
            check_key(&window, tip, number);
        CHECK(window_is_whole(&window) == (where == 6 || where == 0));
        CHECK(!window_repair(&window, (uint64_t)lseek(window.log_fd, 0, SEEK_END)));
        CHECK(window_is_whole(&window));
        uint64_t repaired = load(word_at(&window, TIP));
        CHECK(commits_of(repaired) <= commits_of(tip) + 1);
        CHECK(commits_of(repaired) - *acknowledged == (where >= 2 && where <= 6));
        for (uint64_t number = 0; number < KEYS + FAST; number++)
            check_key(&window, repaired, number), check_key(&window, tip, number);
        *acknowledged = commits_of(repaired);
        died++, kept += commits_of(repaired) != commits_of(tip);
    }
    View view = {.window = &window, .database = 'a', .seen = LOG_HEAD_BYTES};
    check_walk(&view, load(word_at(&window, TIP)));
    leave(&view);
    printf("%u kills, %u records taken in, %lu commits\n", died, kept, *acknowledged);
    return 0;
}

int main(int count, char **arguments)
{
    make_crc_table();
    if (count == 3 && !strcmp(arguments[1], "threads"))
        return threads(arguments[2]);
    if (count == 3 && !strcmp(arguments[1], "kills"))
        return kills(arguments[2]);
    fprintf(stderr, "usage: harness threads|kills FILE\n");
    return 2;
}
