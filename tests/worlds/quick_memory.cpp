// Memory of worlds, which live in one thread and for a moment: an eighth of a run went into malloc() and free().
//
// Small blocks are kept by size and taken again, the last one first; nothing goes back to the system. Each arena has
// blocks of one size, so that delete finds out which without being told.
#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t grain = 16;
constexpr std::size_t largest = 1024;
constexpr std::size_t arena_size = std::size_t{1} << 16;
// Of addresses, not of memory.
constexpr std::size_t reserved = std::size_t{1} << 34;
constexpr std::size_t arenas = reserved / arena_size;

struct Block {
  Block* next;
};

struct Memory {
  char* begin = nullptr;
  std::size_t used = 0;  // arenas
  std::array<Block*, largest / grain + 1> free{};
  std::array<std::uint8_t, arenas> size{};  // by arena, in grains; 0: unused
};

// No other thread allocates in a world. Zero-initialized: it is used before main().
constinit Memory memory;

bool add_arena(std::size_t grains) {
  if (memory.begin == nullptr) {
    void* made = ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return false;
    memory.begin = static_cast<char*>(made);
  }
  if (memory.used == arenas) return false;
  auto* arena = memory.begin + memory.used * arena_size;
  memory.size[memory.used++] = static_cast<std::uint8_t>(grains);
  const auto step = grains * grain;
  for (auto at = arena_size / step; at-- > 0;) memory.free[grains] = new (arena + at * step) Block{memory.free[grains]};
  return true;
}

void* take(std::size_t bytes) {
  const auto grains = (bytes + grain - 1) / grain;
  auto& free = memory.free[grains];
  if (free == nullptr && !add_arena(grains)) return nullptr;
  auto* block = free;
  free = block->next;
  return block;
}

void give(void* block) noexcept {
  const auto at = static_cast<std::size_t>(static_cast<char*>(block) - memory.begin);
  if (memory.begin == nullptr || at >= reserved) return std::free(block);
  auto& free = memory.free[memory.size[at / arena_size]];
  free = new (block) Block{free};
}

}  // namespace

void* operator new(std::size_t bytes) {
  if (bytes == 0) bytes = 1;
  void* block = bytes <= largest ? take(bytes) : std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void operator delete(void* block) noexcept {
  if (block != nullptr) give(block);
}
void operator delete(void* block, std::size_t) noexcept {
  operator delete(block);
}
