/* cmocka.h with the headers that it needs before it. */
#ifndef TC_SUPPORT_CMOCKA_H
#define TC_SUPPORT_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
