#!/usr/bin/env python3
"""Writes a small Llama with random weights, whose tokens are bytes: make_llama.py FOLDER"""

import sys

import transformers

transformers.set_seed(1)
transformers.LlamaForCausalLM(
    transformers.LlamaConfig(
        vocab_size=256,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=512,
    )
).save_pretrained(sys.argv[1])
