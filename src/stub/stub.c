/* The version symbols of generated code (torc/stub.h). A version that was served once is served for good. */
#include <torc/stub.h>

void torc_stub_v1(void) {}
