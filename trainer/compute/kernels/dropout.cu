// Draws which numbers dropout keeps, as fill_dropout does. A thread draws a block of eight.

KERNEL __launch_bounds__(256) dropout_kept(DropoutArguments a) {
  const long long blocks = (a.width + 7) / 8;
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.places * a.rows * blocks) return;
  const long long block = i % blocks;
  const long long row = i / blocks % a.rows;
  const long long place = i / blocks / a.rows;
  const long long outer = row / a.inner, inner = row % a.inner;
  const long long trial =
      a.trials > 1 ? a.trial[outer * a.trial_strides[0] + inner * a.trial_strides[1]] : 0;
  const long long* keys = a.round_keys + a.of_place[place] + trial;
  const Words words = philox(
      (unsigned)block, (unsigned)a.position[outer * a.position_strides[0] + inner * a.position_strides[1]],
      (unsigned)a.example[outer * a.example_strides[0] + inner * a.example_strides[1]], a.step,
      (unsigned)keys[0], (unsigned)keys[a.word_stride]);
  unsigned char* kept = a.kept + (place * a.rows + row) * a.width + block * 8;
  unsigned long long bytes = 0;
#pragma unroll
  for (unsigned n = 0; n < 8; ++n) {
    if (sixteen_bits(words.word, n) >= a.dropped) bytes |= 1ull << (8 * n);
  }
  if (a.width % 8 == 0) {
    *(unsigned long long*)kept = bytes;
  } else {
    const long long left = a.width - block * 8;
    for (long long n = 0; n < (left < 8 ? left : 8); ++n) kept[n] = (unsigned char)(bytes >> (8 * n));
  }
}
