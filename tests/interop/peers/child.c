// A child in C: asks a parent for a subtree by a REQ, which gets one message with all of it.
//
//     cc child.c -lczmq -lzmq -o child && ./child tcp://127.0.0.1:27503 /CONFIG/web/
//
// Prints a line per pair, `KVSYNC key number value`, then `KTHXBAI subtree number`; or `WTF code text`, exit status 1.
#include <czmq.h>
#include <inttypes.h>

static uint64_t number_of(zframe_t *frame) {
    uint64_t number = 0;
    for (size_t at = 0; at < zframe_size(frame); at++) number = number << 8 | zframe_data(frame)[at];
    return number;
}

static void print(const char *word, zframe_t *name, zframe_t *number, zframe_t *value) {
    printf("%s %.*s %" PRIu64, word, (int) zframe_size(name), (char *) zframe_data(name), number_of(number));
    if (value) printf(" %.*s", (int) zframe_size(value), (char *) zframe_data(value));
    puts("");
}

int main(int count, char **words) {
    if (count != 3) return 2;
    zsock_t *parent = zsock_new_req(words[1]);
    zsock_set_linger(parent, 0);
    zsock_set_rcvtimeo(parent, 20000);
    zstr_sendx(parent, "ICANHAZ", "", "", "", words[2], NULL);
    zmsg_t *answer = zmsg_recv(parent);
    int is_good = answer && zmsg_size(answer) % 5 == 0;
    for (size_t rest = answer ? zmsg_size(answer) : 0; rest; rest -= is_good ? 5 : rest) {
        zframe_t *frames[5] = {0};
        for (size_t at = 0; at < 5 && at < rest; at++) frames[at] = zmsg_pop(answer);
        if (!is_good) print("WTF", frames[2], frames[1], NULL);
        else if (zframe_streq(frames[0], "KTHXBAI")) print("KTHXBAI", frames[4], frames[1], NULL);
        else print("KVSYNC", frames[0], frames[1], frames[4]);
        for (size_t at = 0; at < 5; at++) zframe_destroy(&frames[at]);
    }
    zmsg_destroy(&answer);
    zsock_destroy(&parent);
    return is_good ? 0 : 1;
}
