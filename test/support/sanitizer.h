/* Which sanitizer the test is built with, by GCC or Clang: SANITIZER_ADDRESS and SANITIZER_THREAD are 1 or 0. */
#ifndef TC_SUPPORT_SANITIZER_H
#define TC_SUPPORT_SANITIZER_H

#if defined(__has_feature)
#define SANITIZER_HAS(feature) __has_feature(feature)
#else
#define SANITIZER_HAS(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || SANITIZER_HAS(address_sanitizer)
#define SANITIZER_ADDRESS 1
#else
#define SANITIZER_ADDRESS 0
#endif

#if defined(__SANITIZE_THREAD__) || SANITIZER_HAS(thread_sanitizer)
#define SANITIZER_THREAD 1
#else
#define SANITIZER_THREAD 0
#endif

#endif
