#include <elf.h>
#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <vector>

#include "support/process.hpp"

/// What the linker and the compiler put into the program that is shipped.
namespace hubferry::test {
namespace {

class Hardening : public testing::Test {
 protected:
  Hardening() {
    std::ifstream in{hubferry_binary(), std::ios::binary | std::ios::ate};
    bytes_.resize(static_cast<std::size_t>(in.tellg()));
    in.seekg(0);
    in.read(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    header_ = at<Elf64_Ehdr>(0);
    for (std::size_t i = 0; i < header_.e_phnum; ++i)
      segments_.push_back(at<Elf64_Phdr>(header_.e_phoff + i * sizeof(Elf64_Phdr)));
  }

  template <typename T>
  T at(std::size_t offset) const {
    T value;
    if (offset + sizeof value > bytes_.size()) throw std::runtime_error("the file is cut off");
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  [[nodiscard]] const Elf64_Phdr* segment(std::uint32_t type) const {
    for (const auto& segment : segments_)
      if (segment.p_type == type) return &segment;
    return nullptr;
  }
  /// The value of an entry of the dynamic section; 0 where there is none.
  [[nodiscard]] std::uint64_t dynamic(std::int64_t tag) const {
    const auto* section = segment(PT_DYNAMIC);
    if (section == nullptr) return 0;
    for (std::size_t offset = 0; offset < section->p_filesz; offset += sizeof(Elf64_Dyn))
      if (const auto entry = at<Elf64_Dyn>(section->p_offset + offset); entry.d_tag == tag) return entry.d_un.d_val;
    return 0;
  }
  [[nodiscard]] bool refers_to(std::string_view function) const {
    return bytes_.find(std::string(1, '\0').append(function).append(1, '\0')) != std::string::npos;
  }

  std::string bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
};

TEST_F(Hardening, TheProgramIsPositionIndependentAndItsStackHoldsNoCode) {
  EXPECT_EQ(header_.e_type, ET_DYN);
  EXPECT_TRUE(dynamic(DT_FLAGS_1) & DF_1_PIE);
  ASSERT_NE(segment(PT_GNU_STACK), nullptr);
  EXPECT_FALSE(segment(PT_GNU_STACK)->p_flags & PF_X);
}

#ifdef HUBFERRY_HARDENED
TEST_F(Hardening, TheOptimizedProgramResolvesAllFunctionsAtStartAndThenProtectsTheirTable) {
  EXPECT_NE(segment(PT_GNU_RELRO), nullptr);
  EXPECT_TRUE((dynamic(DT_FLAGS) & DF_BIND_NOW) != 0 || (dynamic(DT_FLAGS_1) & DF_1_NOW) != 0);
}

TEST_F(Hardening, TheOptimizedProgramChecksItsStackAndItsBuffers) {
  EXPECT_TRUE(refers_to("__stack_chk_fail"));
  EXPECT_TRUE(refers_to("__memcpy_chk") || refers_to("__memmove_chk") || refers_to("__snprintf_chk") ||
              refers_to("__read_chk"));
}
#endif

}  // namespace
}  // namespace hubferry::test
