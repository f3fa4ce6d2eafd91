-- The first schema without the fields for sharing, dropout and the length of an example.
CREATE TABLE sweeps ( key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, about TEXT, file TEXT,
  digest TEXT, recorded_at REAL);
CREATE TABLE trials ( key INTEGER PRIMARY KEY, trial_id TEXT NOT NULL UNIQUE, config TEXT NOT
  NULL, backbone_digest TEXT, bls_bits REAL, stored_bits INTEGER, cancelled INTEGER NOT NULL
  DEFAULT 0, retried_after INTEGER NOT NULL DEFAULT 0, result_attempt INTEGER REFERENCES attempts,
  user TEXT NOT NULL DEFAULT '{}', "tasks" TEXT, "backbone" TEXT, "seed" INTEGER, "module_kind"
  TEXT, "module_mask" TEXT, "module_bottleneck" INTEGER, "training_epochs" INTEGER,
  "training_batch_size" INTEGER, "training_gradient_accumulation" INTEGER,
  "training_learning_rate" REAL, "training_weight_decay" REAL, "training_warmup_ratio" REAL,
  "training_max_grad_norm" REAL, "training_checkpoint_every" INTEGER, "data_max_train_examples"
  INTEGER, "data_max_validation_examples" INTEGER, "data_max_test_examples" INTEGER,
  "module_sparsity_ratio" REAL, "training_mask_learning_rate" REAL, "module_rank" INTEGER,
  "module_alpha" REAL, "module_prefix_length" INTEGER, "module_prefix_hidden" INTEGER);
CREATE TABLE sweep_trials ( sweep INTEGER NOT NULL REFERENCES sweeps, trial INTEGER NOT NULL
  REFERENCES trials, variant TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (sweep, trial,
  variant)) WITHOUT ROWID;
CREATE INDEX sweep_trials_by_trial ON sweep_trials (trial);
CREATE TABLE attempts ( key INTEGER PRIMARY KEY, trial INTEGER NOT NULL REFERENCES trials, number
  INTEGER NOT NULL, sweep TEXT, owner TEXT, launcher TEXT, "commit" TEXT, begun_at REAL, parent
  INTEGER, resume_step INTEGER, resume_seq INTEGER, resume_checkpoint TEXT, host TEXT, boot_id
  TEXT, pid_namespace TEXT, device TEXT, pid INTEGER, pid_start INTEGER, job TEXT, launched_at
  REAL, started_at REAL, worker TEXT, worker_version TEXT, worker_pid INTEGER, numerics TEXT,
  backbone_digest TEXT, data_digests TEXT, checkpoint_step INTEGER, checkpoint_seq INTEGER,
  checkpoint_path TEXT, event_outcome TEXT, event_kind TEXT, event_reason TEXT, event_at REAL,
  finished_step INTEGER, peak_memory_mib REAL, train_seconds REAL, note TEXT, ending_outcome TEXT,
  ending_reason TEXT, exit_code INTEGER, signal INTEGER, log_tail TEXT, ending_at REAL,
  events_offset INTEGER NOT NULL DEFAULT 0, events_next_seq INTEGER NOT NULL DEFAULT 0,
  events_lines INTEGER NOT NULL DEFAULT 0, events_closed INTEGER NOT NULL DEFAULT 0, counts_to
  INTEGER, outcome TEXT AS (coalesce(event_outcome, ending_outcome, 'open')) VIRTUAL, reason TEXT
  AS (coalesce(event_reason, ending_reason)) VIRTUAL, ended_at REAL AS (coalesce(event_at,
  ending_at)) VIRTUAL, UNIQUE (trial, number));
CREATE INDEX attempts_open ON attempts (outcome) WHERE outcome = 'open';
CREATE TABLE progress ( attempt INTEGER PRIMARY KEY REFERENCES attempts, step INTEGER NOT NULL, of
  INTEGER NOT NULL, loss REAL, time REAL NOT NULL);
CREATE TABLE artifacts ( attempt INTEGER PRIMARY KEY REFERENCES attempts, path TEXT, bls_bits
  REAL, stored_bits INTEGER);
CREATE TABLE series ( key INTEGER PRIMARY KEY, split TEXT NOT NULL, task TEXT NOT NULL, name TEXT
  NOT NULL, UNIQUE (split, task, name));
CREATE TABLE metric_values ( attempt INTEGER NOT NULL REFERENCES attempts, seq INTEGER NOT NULL,
  step INTEGER NOT NULL, series INTEGER NOT NULL REFERENCES series, value REAL, PRIMARY KEY
  (attempt, seq)) WITHOUT ROWID;
CREATE VIEW metrics AS SELECT t.trial_id, a.number AS attempt, v.seq, v.step, s.split, s.task,
  s.name, v.value FROM trials t CROSS JOIN attempts a ON a.trial = t.key CROSS JOIN metric_values
  v ON v.attempt = a.key CROSS JOIN series s ON s.key = v.series;
CREATE VIEW results AS SELECT t.trial_id, a.number AS attempt, v.seq, v.step, s.split, s.task,
  s.name, v.value, t."tasks", t."backbone", t."seed", t."module_kind", t."module_mask",
  t."module_bottleneck", t."training_epochs", t."training_batch_size",
  t."training_gradient_accumulation", t."training_learning_rate", t."training_weight_decay",
  t."training_warmup_ratio", t."training_max_grad_norm", t."training_checkpoint_every",
  t."data_max_train_examples", t."data_max_validation_examples", t."data_max_test_examples",
  t."module_sparsity_ratio", t."training_mask_learning_rate", t."module_rank", t."module_alpha",
  t."module_prefix_length", t."module_prefix_hidden", t.user, coalesce(f.bls_bits, t.bls_bits) AS
  bls_bits, coalesce(f.stored_bits, t.stored_bits) AS stored_bits, a.numerics, a.data_digests FROM
  trials t LEFT JOIN artifacts f ON f.attempt = t.result_attempt CROSS JOIN attempts a ON a.trial
  = t.key AND a.counts_to IS NOT NULL CROSS JOIN metric_values v ON v.attempt = a.key AND v.seq <=
  a.counts_to CROSS JOIN series s ON s.key = v.series;
CREATE VIEW sweep_results AS SELECT w.name AS sweep, nullif(m.variant, '') AS variant, t.trial_id,
  a.number AS attempt, v.seq, v.step, s.split, s.task, s.name, v.value, t."tasks", t."backbone",
  t."seed", t."module_kind", t."module_mask", t."module_bottleneck", t."training_epochs",
  t."training_batch_size", t."training_gradient_accumulation", t."training_learning_rate",
  t."training_weight_decay", t."training_warmup_ratio", t."training_max_grad_norm",
  t."training_checkpoint_every", t."data_max_train_examples", t."data_max_validation_examples",
  t."data_max_test_examples", t."module_sparsity_ratio", t."training_mask_learning_rate",
  t."module_rank", t."module_alpha", t."module_prefix_length", t."module_prefix_hidden", t.user,
  coalesce(f.bls_bits, t.bls_bits) AS bls_bits, coalesce(f.stored_bits, t.stored_bits) AS
  stored_bits, a.numerics, a.data_digests FROM sweeps w CROSS JOIN sweep_trials m ON m.sweep =
  w.key CROSS JOIN trials t ON t.key = m.trial LEFT JOIN artifacts f ON f.attempt =
  t.result_attempt CROSS JOIN attempts a ON a.trial = t.key AND a.counts_to IS NOT NULL CROSS JOIN
  metric_values v ON v.attempt = a.key AND v.seq <= a.counts_to CROSS JOIN series s ON s.key =
  v.series;
PRAGMA application_id = 1885697132;
PRAGMA user_version = 1;
INSERT INTO sweeps VALUES (1, 'old', 'about it', 'old.yaml', 'sha256:s', 1000.5);
INSERT INTO trials (key, trial_id, config, backbone_digest, bls_bits, stored_bits, cancelled,
  retried_after, result_attempt, user, tasks, backbone, seed, module_kind, module_mask,
  module_bottleneck, training_epochs, training_batch_size, training_gradient_accumulation,
  training_learning_rate, training_weight_decay, training_warmup_ratio, training_max_grad_norm,
  training_checkpoint_every, data_max_train_examples, data_max_validation_examples,
  data_max_test_examples, module_sparsity_ratio, training_mask_learning_rate, module_rank,
  module_alpha, module_prefix_length, module_prefix_hidden) VALUES (1, 't1', '{"backbone":"minilm","task":"cola","seed":1,"module":{"kind":"adapter","share":true,"mask":"none","bottleneck":64},
"training":{"epochs":20,"batch_size":128,"gradient_accumulation":1,"learning_rate":0.0001,"weight_decay":0.1,"warmup_ratio":0.1,"max_grad_norm":1.0,"dropout":0.25,"checkpoint_every":0},
"data":{"max_tokens":128,"max_train_examples":0,"max_validation_examples":0,"max_test_examples":0},"user":{"width":3}}', 'sha256:b',
  1000.0, 1024, 0, 0, 2, '{"width":3}', 'cola', 'minilm', 1, 'adapter', 'none', 64, 20, 128, 1,
  0.0001, 0.1, 0.1, 1.0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO trials (key, trial_id, config, backbone_digest, bls_bits, stored_bits, cancelled,
  retried_after, result_attempt, user, tasks, backbone, seed, module_kind, module_mask,
  module_bottleneck, training_epochs, training_batch_size, training_gradient_accumulation,
  training_learning_rate, training_weight_decay, training_warmup_ratio, training_max_grad_norm,
  training_checkpoint_every, data_max_train_examples, data_max_validation_examples,
  data_max_test_examples, module_sparsity_ratio, training_mask_learning_rate, module_rank,
  module_alpha, module_prefix_length, module_prefix_hidden) VALUES (2, 't2', '{"backbone":"minilm","task":"cola","seed":2,"module":{"kind":"lora","share":false,"mask":"none","rank":32,"alpha":32.0},
"training":{"epochs":20,"batch_size":128,"gradient_accumulation":1,"learning_rate":0.0001,"weight_decay":0.1,"warmup_ratio":0.1,"max_grad_norm":1.0,"dropout":-1.0,"checkpoint_every":0},
"data":{"max_tokens":64,"max_train_examples":0,"max_validation_examples":0,"max_test_examples":0},"user":{"width":3}}', 'sha256:b',
  1000.0, 1024, 0, 0, NULL, '{"width":3}', 'cola', 'minilm', 2, 'lora', 'none', NULL, 20, 128, 1,
  0.0001, 0.1, 0.1, 1.0, 0, 0, 0, 0, NULL, NULL, 32, 32.0, NULL, NULL);
INSERT INTO trials (key, trial_id, config, backbone_digest, bls_bits, stored_bits, cancelled,
  retried_after, result_attempt, user, tasks, backbone, seed, module_kind, module_mask,
  module_bottleneck, training_epochs, training_batch_size, training_gradient_accumulation,
  training_learning_rate, training_weight_decay, training_warmup_ratio, training_max_grad_norm,
  training_checkpoint_every, data_max_train_examples, data_max_validation_examples,
  data_max_test_examples, module_sparsity_ratio, training_mask_learning_rate, module_rank,
  module_alpha, module_prefix_length, module_prefix_hidden) VALUES (3, 't3', '{"backbone":"minilm","task":"cola","seed":3,"module":{"kind":"adapter","share":false,"mask":"none","bottleneck":8},
"training":{"epochs":20,"batch_size":128,"gradient_accumulation":1,"learning_rate":0.0001,"weight_decay":0.1,"warmup_ratio":0.1,"max_grad_norm":1.0,"dropout":-1.0,"checkpoint_every":0},
"data":{"max_tokens":128,"max_train_examples":0,"max_validation_examples":0,"max_test_examples":0},"user":{"width":3}}', 'sha256:b',
  1000.0, 1024, 1, 0, NULL, '{"width":3}', 'cola', 'minilm', 3, 'adapter', 'none', 8, 20, 128, 1,
  0.0001, 0.1, 0.1, 1.0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO sweep_trials VALUES (1, 1, 'a', 0), (1, 2, 'b', 1), (1, 3, '', 2);
INSERT INTO attempts (key, trial, number, sweep, owner, launcher, begun_at, parent, resume_step,
  resume_seq, resume_checkpoint, host, boot_id, pid_namespace, device, started_at, worker,
  numerics, data_digests, checkpoint_step, checkpoint_seq, checkpoint_path, event_outcome,
  event_kind, event_reason, event_at, finished_step, peak_memory_mib, train_seconds,
  ending_outcome, ending_reason, ending_at, events_offset, events_next_seq, events_lines,
  events_closed, counts_to) VALUES 
(1, 1, 1, 'old', 'me', 'local', 10.0, NULL, NULL, NULL, NULL, 'here', 'boot', 'pid:[1]', 'cpu-0', 11.0, 'w', '{"version":"1"}', '{"cola":"sha256:d"}', 10, 2, 'checkpoint/step-10', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'stopped', 'asked to stop', 12.0, 100, 4, 4, 0, 2),
(2, 1, 2, 'old', 'me', 'local', 20.0, 1, 10, 2, 'checkpoint/step-10', 'here', 'boot', 'pid:[1]', 'cpu-0', 21.0, 'w', '{"version":"1"}', '{"cola":"sha256:d"}', NULL, NULL, NULL, 'finished', NULL, NULL, 25.0, 30, 500.0, 4.5, NULL, NULL, NULL, 200, 3, 3, 1, 9223372036854775807),
(3, 2, 1, 'old', 'me', 'local', 30.0, NULL, NULL, NULL, NULL, 'here', 'boot', 'pid:[1]', 'cpu-0', 31.0, 'w', '{"version":"1"}', '{"cola":"sha256:d"}', NULL, NULL, NULL, 'failed', 'error', 'no data', 32.0, NULL, NULL, NULL, 'failed', 'no data', 32.0, 90, 2, 2, 1, NULL);
INSERT INTO progress VALUES (2, 30, 30, 0.125, 24.0);
INSERT INTO artifacts VALUES (2, 'artifact.petl', 990.0, 1016);
INSERT INTO series VALUES (1, 'train', 'cola', 'loss'), (2, 'test', 'cola', 'matthews');
INSERT INTO metric_values VALUES (1, 1, 10, 1, 0.5), (1, 3, 20, 1, 0.75), (2, 1, 30, 1, 0.125),
  (2, 2, 30, 2, NULL);
