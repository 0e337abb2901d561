#include "core/heap.h"

#include <stdint.h>

#include "unit/suite.h"

enum { MANY = 200, STEPS = 20000 };

struct thing {
    struct hf_heap_node node;
    uint32_t rank;
    bool in;
};

static struct thing things[MANY];

static bool is_first(const struct hf_heap_node *a, const struct hf_heap_node *b)
{
    return ((const struct thing *)a)->rank < ((const struct thing *)b)->rank;
}

/* Searched from end to end. */
static const struct thing *find_first(void)
{
    const struct thing *first = NULL;

    for (size_t i = 0; i < MANY; i++) {
        if (things[i].in && (first == NULL || things[i].rank < first->rank))
            first = &things[i];
    }
    return first;
}

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

START_TEST(the_first_comes_first_whatever_is_added_and_removed)
{
    uint64_t random = 88172645463325252u + (uint64_t)_i;
    struct hf_heap_node *heap = NULL;

    for (uint32_t step = 0; step < STEPS; step++) {
        struct thing *thing = &things[draw(&random) % MANY];

        if (thing->in) {
            /* What it was ordered by need not hold any more when it goes. */
            thing->rank = (uint32_t)draw(&random);
            heap = hf_heap_remove(heap, &thing->node, is_first);
        } else {
            thing->rank = ((uint32_t)draw(&random) & 0xffff0000u) | (step & 0xffffu);
            heap = hf_heap_meld(heap, &thing->node, is_first);
        }
        thing->in = !thing->in;
        ck_assert_ptr_eq(heap, find_first());
    }
    while (heap != NULL) {
        ck_assert_ptr_eq(heap, find_first());
        ((struct thing *)heap)->in = false;
        heap = hf_heap_remove(heap, heap, is_first);
    }
    ck_assert_ptr_null(find_first());
}
END_TEST

START_TEST(two_heaps_become_one)
{
    struct hf_heap_node *odd = NULL, *even = NULL, *heap;

    for (uint32_t i = 0; i < MANY; i++) {
        things[i] = (struct thing){ .rank = i * 7919 % MANY };
        if (i % 2 == 0)
            even = hf_heap_meld(even, &things[i].node, is_first);
        else
            odd = hf_heap_meld(odd, &things[i].node, is_first);
    }
    heap = hf_heap_meld(odd, even, is_first);
    for (uint32_t i = 0; i < MANY; i++) {
        ck_assert_uint_eq(((const struct thing *)heap)->rank, i);
        heap = hf_heap_remove(heap, heap, is_first);
    }
    ck_assert_ptr_null(heap);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("heap");

    tcase_add_loop_test(t, the_first_comes_first_whatever_is_added_and_removed, 0, 5);
    tcase_add_test(t, two_heaps_become_one);
    return run("core/heap", t);
}
