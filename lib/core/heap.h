/* heap.h - the first of many, by an order of the caller's: a pairing heap whose nodes stand in
 * their objects.
 *
 * Pure, and without memory of its own. Adding and melding are O(1), removing any node is
 * O(log n) amortised. Everything is inline, so that the order is compiled into it: `before` is
 * to be the name of a function. A heap is its first node; NULL is an empty one. */
#ifndef HF_CORE_HEAP_H
#define HF_CORE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialise; must not move while it is in a heap. `back` is the parent of a first child,
 * and the sibling before of any other. */
struct hf_heap_node {
    struct hf_heap_node *child, *sibling, *back;
};

/* Whether `a` has to come before `b`. */
typedef bool (*hf_heap_before_fn)(const struct hf_heap_node *a, const struct hf_heap_node *b);

#define HF_HEAP_INLINE static inline __attribute__((always_inline, unused))

/* The heap of both; a node by itself is one, too. */
HF_HEAP_INLINE struct hf_heap_node *hf_heap_meld(struct hf_heap_node *a, struct hf_heap_node *b,
                                                 hf_heap_before_fn before)
{
    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    if (before(b, a)) {
        struct hf_heap_node *swapped = a;

        a = b;
        b = swapped;
    }
    b->sibling = a->child;
    if (b->sibling != NULL)
        b->sibling->back = b;
    b->back = a;
    a->child = b;
    return a;
}

/* Melds the siblings in pairs, then the pairs from the last to the first: that is what makes
 * the heap fast. The pairs are chained by `back` meanwhile. */
HF_HEAP_INLINE struct hf_heap_node *hf_heap_meld_all(struct hf_heap_node *node,
                                                     hf_heap_before_fn before)
{
    struct hf_heap_node *pairs = NULL, *heap = NULL;

    while (node != NULL) {
        struct hf_heap_node *a = node, *b = a->sibling;

        node = b != NULL ? b->sibling : NULL;
        a->sibling = a->back = NULL;
        if (b != NULL)
            b->sibling = b->back = NULL;
        a = hf_heap_meld(a, b, before);
        a->back = pairs;
        pairs = a;
    }
    while (pairs != NULL) {
        struct hf_heap_node *next = pairs->back;

        pairs->back = NULL;
        heap = hf_heap_meld(heap, pairs, before);
        pairs = next;
    }
    return heap;
}

/* The heap without a node that is in it. The node itself is compared with nothing: it may be
 * taken out after what it is ordered by has changed. */
HF_HEAP_INLINE struct hf_heap_node *
hf_heap_remove(struct hf_heap_node *heap, struct hf_heap_node *node, hf_heap_before_fn before)
{
    struct hf_heap_node *below = hf_heap_meld_all(node->child, before);

    node->child = NULL;
    if (node == heap) {
        heap = below;
    } else {
        if (node->back->child == node)
            node->back->child = node->sibling;
        else
            node->back->sibling = node->sibling;
        if (node->sibling != NULL)
            node->sibling->back = node->back;
        heap = hf_heap_meld(heap, below, before);
    }
    node->sibling = node->back = NULL;
    return heap;
}

#endif
