// Memory of a process that has one thread and lives for a moment, as a clone of a world has: blocks of one size follow
// each other and are used again as they come back, without a lock, a header or a search. Replaces operator new of the
// program that it is linked into. Nothing is returned to the system.
#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t step = 16;
constexpr std::size_t largest = 1024;
constexpr std::size_t page = 1 << 15;
// Only addresses: the system provides what is touched. What does not fit comes from malloc().
constexpr std::size_t arena = std::size_t{1} << 35;

struct Free {
  Free* next;
};

struct Class {
  Free* freed = nullptr;
  std::byte* next = nullptr;  // of the page that is not used up
  std::byte* end = nullptr;
};

constinit std::array<Class, largest / step + 1> classes{};
constinit std::byte* begin = nullptr;
constinit std::size_t used = 0;
constinit std::array<std::uint8_t, arena / page> class_of_page{};

/// A page more for that class; false: there is none.
bool grow(std::size_t index) {
  if (begin == nullptr) {
    void* made = ::mmap(nullptr, arena, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) {
      used = arena;
      return false;
    }
    begin = static_cast<std::byte*>(made);
  }
  if (used + page > arena) return false;
  class_of_page[used / page] = static_cast<std::uint8_t>(index);
  classes[index].next = begin + used;
  used += page;
  classes[index].end = begin + used;
  return true;
}

void* allocate(std::size_t size) {
  if (size <= largest) {
    const auto index = (size + step - 1) / step + (size == 0 ? 1 : 0);
    auto& blocks = classes[index];
    if (auto* block = blocks.freed; block != nullptr) {
      blocks.freed = block->next;
      return block;
    }
    if (blocks.next + index * step <= blocks.end || grow(index)) {
      auto* block = blocks.next;
      blocks.next += index * step;
      return block;
    }
  }
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc{};
}

void release(void* memory) noexcept {
  const auto offset = reinterpret_cast<std::uintptr_t>(memory) - reinterpret_cast<std::uintptr_t>(begin);
  if (begin == nullptr || offset >= used) {
    std::free(memory);
    return;
  }
  auto& blocks = classes[class_of_page[offset / page]];
  blocks.freed = ::new (memory) Free{blocks.freed};
}

}  // namespace

void* operator new(std::size_t size) {
  return allocate(size);
}
void* operator new[](std::size_t size) {
  return allocate(size);
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete[](void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::size_t /*size*/) noexcept {
  release(memory);
}
