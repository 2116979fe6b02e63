/* Addresses from texts, IPs and sockaddrs. For an address from a text or an IP, its sockaddr and, unless it is an
 * abstract name, its canonical text give an equal address. An address from a sockaddr is only formatted, and
 * compared with itself. */
#include "base/mem.h"
#include "fuzz.h"
#include "io/addr.h"

static void check_addr(const struct tc_addr *a)
{
    struct tc_addr again, copy;
    struct sockaddr_un un;
    socklen_t len;
    char *text = tc_addr_text(a);
    TC_FUZZ_CHECK(text && text[0]);
    /* An abstract name may hold a NUL, at which a C string ends. */
    bool abstract = tc_addr_family(a) == AF_UNIX && a->unix_path->data[0] == '\0';
    if (!abstract) {
        TC_FUZZ_CHECK(tc_addr_parse(&again, tc_slice_str(text)) == 0);
        TC_FUZZ_CHECK(tc_addr_eq(a, &again) && tc_addr_hash(a) == tc_addr_hash(&again));
        char *same = tc_addr_text(&again);
        TC_FUZZ_CHECK(strcmp(text, same) == 0);
        tc_free(same);
        tc_addr_fini(&again);
    }
    const struct sockaddr *sa = tc_addr_sockaddr(a, &un, &len);
    TC_FUZZ_CHECK(tc_addr_from_sockaddr(&copy, sa, len) == 0);
    TC_FUZZ_CHECK(tc_addr_eq(a, &copy));
    tc_addr_fini(&copy);
    tc_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_slice text = tc_slice_of(data, size);
    struct tc_addr a;
    if (tc_addr_parse(&a, text) == 0) {
        check_addr(&a);
        tc_addr_fini(&a);
    }
    if (tc_addr_from_ip(&a, text, 443) == 0) {
        check_addr(&a);
        tc_addr_fini(&a);
    }
    struct sockaddr_storage storage = {0};
    memcpy(&storage, data, TC_MIN(size, sizeof(storage)));
    if (tc_addr_from_sockaddr(&a, (const struct sockaddr *)&storage, (socklen_t)TC_MIN(size, sizeof(storage))) == 0) {
        struct tc_buf out = {0};
        tc_addr_format(&a, &out);
        TC_FUZZ_CHECK(tc_addr_eq(&a, &a));
        tc_buf_fini(&out);
        tc_addr_fini(&a);
    }
    return 0;
}
