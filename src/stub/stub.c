/* The version symbols of generated code (torc/stub.h). A version that a release has had is never removed. */
#include <torc/stub.h>

void torc_stub_v1(void) {}
