/* The window in plain C, without Python: window.py draws both files and says what each call promises. The harness in
   tests/storage/window/ compiles this file by itself, for threads under ThreadSanitizer and for kills at each STEP.

   One writer at a time (the holder of the store's writer lock) and any number of readers, in any processes.

     LAW   A reader holds no lock. All that it follows was written before the word that led it there: the log before the
           slot, the slot before `tip`. Words that others read are stored with release and loaded with acquire.
     LAW   A row at or beyond a reader's end does not exist for it: it follows `previous` to one that does.
     LAW   The index says nothing that the log does not say. Whatever a writer left unfinished, `window_repair` finishes
           from the log, or cuts it off. */

#ifndef RLITE_WINDOW_CORE
#define RLITE_WINDOW_CORE

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef STEP
#define STEP(number) ((void)0) /* where a test may kill the writer */
#endif
#ifndef WRITE_LOG
#define WRITE_LOG(fd, bytes, size, at) pwrite(fd, bytes, size, at)
#endif

enum {
    LOG_HEAD_BYTES = 64,
    RECORD_HEAD_BYTES = 32,
    ROW_HEAD_BYTES = 12,
    INDEX_HEAD_BYTES = 4096,
    UNIT = 8, /* positions in slots and rows count these */
    MOST_KEY_BYTES = 511,
};
#define REMOVED 0xffffffffu
#define WINDOW_FULL 1

/* The words of the index's head that change; window.py has the whole of it. */
enum { TIP = 64, PENDING = 128, INDEXED = 136, NEXT = 144, USED = 152, HOME = 160, SYNCED = 192, GROWN = 200 };

typedef struct {
    const uint8_t *log; /* mapped as far as it may grow; nobody looks beyond `tip`, or, under the lock, the file's end */
    uint8_t *index;
    uint64_t log_bytes, slots, number, seed[2];
    int log_fd;
    uint8_t *record; /* where a record is put together */
    size_t record_bytes;
} Window;

typedef struct {
    const uint8_t *key, *value;
    uint32_t value_bytes; /* REMOVED: there is no value */
    uint16_t key_bytes;
} Row;

/* -- words and bytes */

static inline uint64_t *word_at(const Window *window, size_t at) { return (uint64_t *)(window->index + at); }
static inline uint64_t load(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
static inline void store(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

static inline uint32_t get32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}
static inline uint64_t get64(const uint8_t *bytes) { return get32(bytes) | (uint64_t)get32(bytes + 4) << 32; }
static inline uint16_t get16(const uint8_t *bytes) { return (uint16_t)(bytes[0] | bytes[1] << 8); }
static inline void put16(uint8_t *bytes, uint16_t value) { bytes[0] = (uint8_t)value, bytes[1] = (uint8_t)(value >> 8); }
static inline void put32(uint8_t *bytes, uint32_t value)
{
    put16(bytes, (uint16_t)value), put16(bytes + 2, (uint16_t)(value >> 16));
}
static inline void put64(uint8_t *bytes, uint64_t value)
{
    put32(bytes, (uint32_t)value), put32(bytes + 4, (uint32_t)(value >> 32));
}

/* -- CRC-32 as zlib has it, eight bytes at a time. Made once, before anything else. */

static uint32_t crc_table[8][256];

static void make_crc_table(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
        crc_table[0][byte] = crc;
    }
    for (int slice = 1; slice < 8; slice++)
        for (int byte = 0; byte < 256; byte++)
            crc_table[slice][byte] = crc_table[slice - 1][byte] >> 8 ^ crc_table[0][crc_table[slice - 1][byte] & 0xff];
}

static uint32_t crc32_of(uint32_t crc, const uint8_t *bytes, size_t size)
{
    crc = ~crc;
    for (; size >= 8; bytes += 8, size -= 8) {
        uint32_t low = get32(bytes) ^ crc, high = get32(bytes + 4);
        crc = crc_table[7][low & 0xff] ^ crc_table[6][low >> 8 & 0xff] ^ crc_table[5][low >> 16 & 0xff] ^
              crc_table[4][low >> 24] ^ crc_table[3][high & 0xff] ^ crc_table[2][high >> 8 & 0xff] ^
              crc_table[1][high >> 16 & 0xff] ^ crc_table[0][high >> 24];
    }
    for (; size; bytes++, size--)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *bytes) & 0xff];
    return ~crc;
}

/* A record's checksum counts its place, so that no record is taken for one where it does not belong. */
static uint32_t record_crc(uint64_t number, uint64_t at, const uint8_t *record, size_t size)
{
    uint8_t place[16];
    put64(place, number), put64(place + 8, at);
    return crc32_of(crc32_of(0, place, sizeof place), record + 8, size - 8);
}

/* -- SipHash-1-3: names come from outside, and must not be made to meet in one slot */

static inline uint64_t rotated(uint64_t word, int bits) { return word << bits | word >> (64 - bits); }

#define SIP_ROUND                                                                \
    (v0 += v1, v1 = rotated(v1, 13) ^ v0, v0 = rotated(v0, 32), v2 += v3,        \
     v3 = rotated(v3, 16) ^ v2, v0 += v3, v3 = rotated(v3, 21) ^ v0, v2 += v1,   \
     v1 = rotated(v1, 17) ^ v2, v2 = rotated(v2, 32))

static uint64_t hash_of(const Window *window, const uint8_t *key, size_t size)
{
    uint64_t v0 = window->seed[0] ^ 0x736f6d6570736575, v1 = window->seed[1] ^ 0x646f72616e646f6d;
    uint64_t v2 = window->seed[0] ^ 0x6c7967656e657261, v3 = window->seed[1] ^ 0x7465646279746573;
    uint64_t last = (uint64_t)size << 56;
    size_t at = 0;
    for (; at + 8 <= size; at += 8) {
        uint64_t word = get64(key + at);
        v3 ^= word, SIP_ROUND, v0 ^= word;
    }
    for (int shift = 0; at < size; at++, shift += 8)
        last |= (uint64_t)key[at] << shift;
    v3 ^= last, SIP_ROUND, v0 ^= last;
    v2 ^= 0xff, SIP_ROUND, SIP_ROUND, SIP_ROUND;
    return v0 ^ v1 ^ v2 ^ v3;
}

/* -- rows and records, by their place in the log */

static inline uint64_t row_previous(const Window *window, uint64_t at) { return (uint64_t)get32(window->log + at) * UNIT; }
static inline uint32_t row_value_bytes(const Window *window, uint64_t at) { return get32(window->log + at + 4); }
static inline uint16_t row_key_bytes(const Window *window, uint64_t at) { return get16(window->log + at + 8); }
static inline const uint8_t *row_key(const Window *window, uint64_t at) { return window->log + at + ROW_HEAD_BYTES; }
static inline const uint8_t *row_value(const Window *window, uint64_t at)
{
    return row_key(window, at) + row_key_bytes(window, at);
}
static inline uint64_t padded(uint64_t size) { return (size + UNIT - 1) & ~(uint64_t)(UNIT - 1); }
static inline uint64_t bytes_of_row(uint64_t key_bytes, uint32_t value_bytes)
{
    return padded(ROW_HEAD_BYTES + key_bytes + (value_bytes == REMOVED ? 0 : value_bytes));
}
/* About what a row takes of LMDB: a place in a page that is three quarters full, or pages of its own. window.py has the
   same sum, and plain.py. */
static inline int64_t taken_by(uint64_t key_bytes, uint32_t value_bytes)
{
    uint64_t size = 10 + key_bytes + value_bytes;
    if (value_bytes == REMOVED)
        return 0;
    return (int64_t)(size > 2000 ? 10 + key_bytes + (value_bytes + 16 + 4095) / 4096 * 4096 : 4096 / (4080 / size) * 4 / 3);
}
static inline uint64_t next_row(const Window *window, uint64_t at)
{
    return at + bytes_of_row(row_key_bytes(window, at), row_value_bytes(window, at));
}
static inline uint64_t first_row(uint64_t record_at) { return record_at + RECORD_HEAD_BYTES; }
static inline uint32_t record_bytes(const Window *window, uint64_t at) { return get32(window->log + at); }
static inline uint32_t record_rows(const Window *window, uint64_t at) { return get32(window->log + at + 24); }

static inline int row_has_key(const Window *window, uint64_t at, const uint8_t *key, size_t size)
{
    return row_key_bytes(window, at) == size && !memcmp(row_key(window, at), key, size);
}

/* The end of the record at this place; 0 if there is no whole one below `limit`, which the file reaches. */
static uint64_t whole_record(const Window *window, uint64_t at, uint64_t limit)
{
    if (at + RECORD_HEAD_BYTES > limit)
        return 0;
    const uint8_t *record = window->log + at;
    uint64_t size = get32(record), rows = get32(record + 24);
    if (size < RECORD_HEAD_BYTES || size % UNIT || size > limit - at ||
        get32(record + 4) != record_crc(window->number, at, record, size))
        return 0;
    uint64_t row = first_row(at), end = at + size; /* a checksum that holds by chance leads nowhere outside */
    for (; rows; rows--) {
        if (row + ROW_HEAD_BYTES > end || row_key_bytes(window, row) > MOST_KEY_BYTES || row_previous(window, row) >= at ||
            bytes_of_row(row_key_bytes(window, row), row_value_bytes(window, row)) > end - row)
            return 0;
        row = next_row(window, row);
    }
    return row == end ? end : 0;
}

/* -- the tip: how far the log is committed, and how many commits that are, in one word */

static inline uint64_t tip_of(uint64_t commits, uint64_t end) { return commits << 32 | end / UNIT; }
static inline uint64_t end_of(uint64_t tip) { return (tip & 0xffffffff) * UNIT; }
static inline uint64_t commits_of(uint64_t tip) { return tip >> 32; }

/* -- the index: open addressing; a slot is 32 bits of the hash, and the place of the key's newest row */

#define SLOT_PLACE(slot) (((slot)&0xffffffff) * UNIT)

/* The slot that has this key, or the empty one where it would be, from `from` on. */
static uint64_t find_slot(const Window *window, uint64_t hash, uint64_t from, const uint8_t *key, size_t size)
{
    const uint64_t *slots = word_at(window, INDEX_HEAD_BYTES);
    uint64_t mask = window->slots - 1, at = from & mask;
    for (;; at = (at + 1) & mask) {
        uint64_t slot = load(&slots[at]);
        if (!slot || (slot >> 32 == hash >> 32 && row_has_key(window, SLOT_PLACE(slot), key, size)))
            return at;
    }
}

static void index_row(Window *window, uint64_t row, uint64_t hash, uint64_t from)
{
    uint64_t *slots = word_at(window, INDEX_HEAD_BYTES);
    uint64_t at = find_slot(window, hash, from, row_key(window, row), row_key_bytes(window, row));
    uint64_t before = load(&slots[at]);
    if (!before)
        store(word_at(window, USED), load(word_at(window, USED)) + 1);
    STEP(4);
    if (SLOT_PLACE(before) < row)
        store(&slots[at], hash >> 32 << 32 | row / UNIT);
}

static inline int64_t taken_by_row(const Window *window, uint64_t row)
{
    return row ? taken_by(row_key_bytes(window, row), row_value_bytes(window, row)) : 0;
}

/* How much more the rows of a record take than those of the same keys that the window had before. */
static int64_t grown_by(const Window *window, uint64_t at)
{
    int64_t grown = 0;
    uint64_t row = first_row(at);
    for (uint32_t rows = record_rows(window, at); rows; rows--, row = next_row(window, row))
        grown += taken_by_row(window, row) - taken_by_row(window, row_previous(window, row));
    return grown;
}

static inline void add_grown(Window *window, int64_t grown)
{
    store(word_at(window, GROWN), load(word_at(window, GROWN)) + (uint64_t)grown);
}

static void index_record(Window *window, uint64_t at)
{
    uint64_t row = first_row(at);
    for (uint32_t rows = record_rows(window, at); rows; rows--, row = next_row(window, row)) {
        uint64_t hash = hash_of(window, row_key(window, row), row_key_bytes(window, row));
        index_row(window, row, hash, hash);
    }
}

static inline int has_slots(const Window *window, uint64_t rows)
{
    return load(word_at(window, USED)) + rows <= window->slots / 4 * 3;
}

/* -- reading */

/* The newest row of a key below `end`; 0 if there is none. */
static uint64_t window_get(const Window *window, uint64_t end, const uint8_t *key, size_t size)
{
    uint64_t indexed = load(word_at(window, INDEXED)), found = 0;
    for (uint64_t at = indexed; at < end; at += record_bytes(window, at)) { /* of a writer that leaves the index alone */
        uint64_t row = first_row(at);
        for (uint32_t rows = record_rows(window, at); rows; rows--, row = next_row(window, row))
            if (row_has_key(window, row, key, size))
                found = row;
    }
    if (found)
        return found;
    uint64_t hash = hash_of(window, key, size);
    uint64_t slot = load(word_at(window, INDEX_HEAD_BYTES) + find_slot(window, hash, hash, key, size));
    uint64_t row = SLOT_PLACE(slot);
    while (row >= end && row)
        row = row_previous(window, row);
    return row;
}

/* -- writing, under the store's writer lock */

static int write_all(int fd, const uint8_t *bytes, size_t size, uint64_t at)
{
    while (size) {
        ssize_t written = WRITE_LOG(fd, bytes, size, (off_t)at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written ? -errno : -ENOSPC;
        bytes += written, size -= (size_t)written, at += (uint64_t)written;
    }
    return 0;
}

static int cut_off(Window *window, uint64_t end)
{
    if (ftruncate(window->log_fd, (off_t)end))
        return -errno;
    store(word_at(window, PENDING), end);
    return 0;
}

/* Finish what a writer left behind: takes in what it had written whole, and cuts off what it had not. `file_bytes` is
   how long the log is. Returns 0, or -errno. */
static int window_repair(Window *window, uint64_t file_bytes)
{
    uint64_t limit = file_bytes < window->log_bytes ? file_bytes : window->log_bytes;
    uint64_t tip = load(word_at(window, TIP)), end = end_of(tip), commits = commits_of(tip), next;
    int64_t grown = 0;
    while ((next = whole_record(window, end, limit)) && commits < 0xffffffff)
        grown += grown_by(window, end), end = next, commits++;
    if (end < file_bytes || load(word_at(window, PENDING)) != end) {
        int status = cut_off(window, end);
        if (status)
            return status;
    }
    for (uint64_t at = load(word_at(window, INDEXED)); at < end; at += record_bytes(window, at)) {
        if (!has_slots(window, record_rows(window, at)))
            break; /* then it stays for readers to search, and the window is full */
        index_record(window, at);
        store(word_at(window, INDEXED), at + record_bytes(window, at));
    }
    store(word_at(window, TIP), tip_of(commits, end));
    add_grown(window, grown);
    return 0;
}

/* Whether `window_repair` has something to do. */
static inline int window_is_whole(const Window *window)
{
    uint64_t end = end_of(load(word_at(window, TIP)));
    return load(word_at(window, PENDING)) == end && load(word_at(window, INDEXED)) == end;
}

/* Commit rows of different keys as one record. Returns 0, WINDOW_FULL, or -errno; then nothing is changed. */
static int window_append(Window *window, const Row *rows, uint32_t count, uint64_t commit, uint64_t time_ms)
{
    uint64_t tip = load(word_at(window, TIP)), end = end_of(tip), size = RECORD_HEAD_BYTES;
    for (uint32_t row = 0; row < count; row++)
        size += bytes_of_row(rows[row].key_bytes, rows[row].value_bytes);
    if (size > window->log_bytes - end || size > 0xfffffff8 || !has_slots(window, count) || commits_of(tip) == 0xffffffff)
        return WINDOW_FULL;
    size_t scratch = size + count * 2 * sizeof(uint64_t);
    if (scratch > window->record_bytes) {
        uint8_t *larger = realloc(window->record, scratch + scratch / 2);
        if (!larger)
            return -ENOMEM;
        window->record = larger, window->record_bytes = scratch + scratch / 2;
    }
    uint8_t *record = window->record, *at = record + RECORD_HEAD_BYTES;
    uint64_t *hashes = (uint64_t *)(record + size), *places = hashes + count;
    const uint64_t *slots = word_at(window, INDEX_HEAD_BYTES);
    put32(record, (uint32_t)size), put64(record + 8, commit), put64(record + 16, time_ms);
    put32(record + 24, count), put32(record + 28, 0);
    for (const Row *row = rows; row < rows + count; row++, hashes++, places++) {
        *hashes = hash_of(window, row->key, row->key_bytes);
        *places = find_slot(window, *hashes, *hashes, row->key, row->key_bytes);
        uint64_t row_bytes = bytes_of_row(row->key_bytes, row->value_bytes);
        memset(at + row_bytes - UNIT, 0, UNIT);
        put32(at, (uint32_t)load(&slots[*places])), put32(at + 4, row->value_bytes);
        put16(at + 8, row->key_bytes), put16(at + 10, 0);
        memcpy(at + ROW_HEAD_BYTES, row->key, row->key_bytes);
        if (row->value_bytes != REMOVED && row->value_bytes)
            memcpy(at + ROW_HEAD_BYTES + row->key_bytes, row->value, row->value_bytes);
        at += row_bytes;
    }
    put32(record + 4, record_crc(window->number, end, record, size));
    STEP(0);
    store(word_at(window, PENDING), end + size);
    STEP(1);
    int status = write_all(window->log_fd, record, size, end);
    if (status) {
        if (cut_off(window, end))
            return status; /* `pending` tells the next writer to repair */
        return status;
    }
    STEP(2);
    hashes -= count, places -= count;
    uint64_t row = first_row(end);
    for (uint32_t number = 0; number < count; number++, row = next_row(window, row)) {
        index_row(window, row, hashes[number], places[number]);
        STEP(3);
    }
    store(word_at(window, TIP), tip_of(commits_of(tip) + 1, end + size));
    STEP(5);
    store(word_at(window, INDEXED), end + size);
    STEP(6);
    add_grown(window, grown_by(window, end));
    if (window->record_bytes > 1 << 20) {
        free(window->record);
        window->record = NULL, window->record_bytes = 0;
    }
    return 0;
}

#endif
