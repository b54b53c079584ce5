/* The keys of a window in order, as far as one process has looked: what a walk needs. It is made when somebody walks,
   for one database (a key's first byte), and each look adds the keys that came since.

     LAW   A key stands here by its first row, whose `previous` is 0. So whoever has an older end finds out by the row's
           place that the key does not exist for it, and nothing here ever changes its place in the order. */

#ifndef RLITE_WINDOW_VIEW
#define RLITE_WINDOW_VIEW

#include "core.h"

typedef struct {
    uint64_t head; /* eight bytes of the key, as a number: most comparisons end here */
    uint64_t row;
} Place;

typedef struct {
    Place *places;
    size_t count, room;
} Places;

typedef struct {
    const Window *window;
    int database; /* -1: all of them */
    uint64_t seen;
    Places old, young; /* young ones are few, so that a new key moves few */
} View;

enum { MOST_YOUNG = 512, HEAD_BYTES = 8 };

static uint64_t head_of(const View *view, const uint8_t *key, size_t size)
{
    size_t from = view->database < 0 ? 0 : 1;
    uint64_t head = 0;
    for (size_t at = from; at < from + HEAD_BYTES; at++)
        head = head << 8 | (at < size ? key[at] : 0);
    return head;
}

static int compare_keys(const uint8_t *key, size_t size, const uint8_t *other, size_t other_size)
{
    int order = memcmp(key, other, size < other_size ? size : other_size);
    return order ? order : (size > other_size) - (size < other_size);
}

static int compare_place(const Window *window, const Place *place, uint64_t head, const uint8_t *key, size_t size)
{
    if (place->head != head)
        return place->head < head ? -1 : 1;
    return compare_keys(row_key(window, place->row), row_key_bytes(window, place->row), key, size);
}

static int compare_places(const Window *window, const Place *place, const Place *other)
{
    return compare_place(window, place, other->head, row_key(window, other->row), row_key_bytes(window, other->row));
}

static int make_place_for(Places *places, size_t more)
{
    size_t wanted = places->count + more;
    if (wanted <= places->room)
        return 0;
    size_t room = wanted + wanted / 2 + 64;
    Place *larger = realloc(places->places, room * sizeof *larger);
    if (!larger)
        return -ENOMEM;
    places->places = larger, places->room = room;
    return 0;
}

/* Sort places by merging; `spare` has room for half of them. What is in order already costs one comparison each. */
static void sort_places(const Window *window, Place *places, size_t count, Place *spare)
{
    if (count < 2)
        return;
    size_t half = count / 2, left = 0, right = half, to = 0;
    sort_places(window, places, half, spare);
    sort_places(window, places + half, count - half, spare);
    if (compare_places(window, &places[half - 1], &places[half]) < 0)
        return;
    memcpy(spare, places, half * sizeof *places);
    while (left < half && right < count)
        places[to++] = compare_places(window, &spare[left], &places[right]) < 0 ? spare[left++] : places[right++];
    memcpy(places + to, spare + left, (half - left) * sizeof *places);
}

/* Merge `more`, in order, into places, in order, for which there is room. */
static void merge_places(const Window *window, Places *places, const Place *more, size_t count)
{
    size_t from = places->count, to = places->count + count;
    places->count = to;
    while (count) {
        if (from && compare_places(window, &places->places[from - 1], &more[count - 1]) > 0)
            places->places[--to] = places->places[--from];
        else
            places->places[--to] = more[--count];
    }
}

static int join_young(View *view)
{
    if (make_place_for(&view->old, view->young.count))
        return -ENOMEM;
    merge_places(view->window, &view->old, view->young.places, view->young.count);
    view->young.count = 0;
    return 0;
}

/* Add the keys of the rows up to `end`. Returns 0, or -errno; then it can be tried again. */
static int view_look(View *view, uint64_t end)
{
    const Window *window = view->window;
    Places fresh = {0};
    for (uint64_t at = view->seen; at < end; at += record_bytes(window, at)) {
        uint64_t row = first_row(at);
        for (uint32_t rows = record_rows(window, at); rows; rows--, row = next_row(window, row)) {
            if (row_previous(window, row) || (view->database >= 0 && row_key(window, row)[0] != view->database))
                continue;
            if (make_place_for(&fresh, 1))
                goto out_of_memory;
            fresh.places[fresh.count].head = head_of(view, row_key(window, row), row_key_bytes(window, row));
            fresh.places[fresh.count++].row = row;
        }
    }
    if (fresh.count) {
        Places *to = fresh.count > MOST_YOUNG ? &view->old : &view->young;
        if (make_place_for(to, fresh.count) || make_place_for(&fresh, fresh.count / 2 + 1))
            goto out_of_memory;
        sort_places(window, fresh.places, fresh.count, fresh.places + fresh.count);
        if (view->young.count + (to == &view->young ? fresh.count : 0) > MOST_YOUNG && join_young(view))
            goto out_of_memory;
        merge_places(window, to, fresh.places, fresh.count);
        free(fresh.places);
    }
    if (end > view->seen)
        view->seen = end;
    return 0;
out_of_memory:
    free(fresh.places);
    return -ENOMEM;
}

/* How many places are before the key; with `past`, or have it. */
static size_t places_before(const View *view, const Places *places, const uint8_t *key, size_t size, int past)
{
    if (view->database >= 0 && (!size || key[0] != view->database))
        return size && key[0] > view->database ? places->count : 0;
    uint64_t head = head_of(view, key, size);
    size_t low = 0, high = places->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_place(view->window, &places->places[middle], head, key, size);
        if (order < 0 || (past && !order))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first row of the next key that exists at `end`, at or after this one (`past`: after it); 0 if there is none. */
static uint64_t view_next(const View *view, uint64_t end, const uint8_t *key, size_t size, int past)
{
    const Place *found = NULL;
    const Places *both[] = {&view->old, &view->young};
    for (int which = 0; which < 2; which++) {
        size_t at = places_before(view, both[which], key, size, past);
        while (at < both[which]->count && both[which]->places[at].row >= end)
            at++;
        if (at < both[which]->count && (!found || compare_places(view->window, &both[which]->places[at], found) < 0))
            found = &both[which]->places[at];
    }
    return found ? found->row : 0;
}

/* The same of the key before it (`at`: or itself). A NULL key is past all of them. */
static uint64_t view_previous(const View *view, uint64_t end, const uint8_t *key, size_t size, int at_too)
{
    const Place *found = NULL;
    const Places *both[] = {&view->old, &view->young};
    for (int which = 0; which < 2; which++) {
        size_t at = key ? places_before(view, both[which], key, size, at_too) : both[which]->count;
        while (at && both[which]->places[at - 1].row >= end)
            at--;
        if (at && (!found || compare_places(view->window, &both[which]->places[at - 1], found) > 0))
            found = &both[which]->places[at - 1];
    }
    return found ? found->row : 0;
}

#endif
