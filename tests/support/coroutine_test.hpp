#pragma once

// ASSERT_* returns from its function, which a coroutine cannot do: these co_return instead.
#include <gtest/gtest.h>

#define CO_ASSERT_TRUE(condition)                    \
  do {                                               \
    if (!(condition)) {                              \
      ADD_FAILURE() << #condition << " is not true"; \
      co_return;                                     \
    }                                                \
  } while (false)

#define CO_ASSERT_EQ(left, right)                                                                      \
  do {                                                                                                 \
    if (!((left) == (right))) {                                                                        \
      ADD_FAILURE() << #left << " != " << #right << "\n  " << ::testing::PrintToString(left) << "\n  " \
                    << ::testing::PrintToString(right);                                                \
      co_return;                                                                                       \
    }                                                                                                  \
  } while (false)
