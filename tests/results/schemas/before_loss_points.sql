-- A database as petlab left it before it recorded loss curves.
PRAGMA application_id = 1885697132;
PRAGMA user_version = 1;
CREATE TABLE sweeps ( key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, about TEXT, file TEXT,
  digest TEXT, recorded_at REAL, overrides TEXT);
CREATE TABLE trials ( key INTEGER PRIMARY KEY, trial_id TEXT NOT NULL UNIQUE, config TEXT NOT
  NULL, backbone_digest TEXT, bls_bits REAL, stored_bits INTEGER, cancelled INTEGER NOT NULL
  DEFAULT 0, retried_after INTEGER NOT NULL DEFAULT 0, result_attempt INTEGER REFERENCES attempts,
  user TEXT NOT NULL DEFAULT '{}', "tasks" TEXT, "backbone" TEXT, "seed" INTEGER, "module_kind"
  TEXT, "module_share" INTEGER, "module_mask" TEXT, "module_bottleneck" INTEGER, "training_epochs"
  INTEGER, "training_batch_size" INTEGER, "training_gradient_accumulation" INTEGER,
  "training_learning_rate" REAL, "training_weight_decay" REAL, "training_warmup_ratio" REAL,
  "training_max_grad_norm" REAL, "training_dropout" REAL, "training_checkpoint_every" INTEGER,
  "data_max_tokens" INTEGER, "data_max_train_examples" INTEGER, "data_max_validation_examples"
  INTEGER, "data_max_test_examples" INTEGER, "module_sparsity_ratio" REAL,
  "training_mask_learning_rate" REAL, "module_rank" INTEGER, "module_alpha" REAL,
  "module_prefix_length" INTEGER, "module_prefix_hidden" INTEGER);
CREATE TABLE sweep_trials ( sweep INTEGER NOT NULL REFERENCES sweeps, trial INTEGER NOT NULL
  REFERENCES trials, variant TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (sweep, trial,
  variant)) WITHOUT ROWID;
CREATE TABLE attempts ( key INTEGER PRIMARY KEY, trial INTEGER NOT NULL REFERENCES trials, number
  INTEGER NOT NULL, sweep TEXT, owner TEXT, launcher TEXT, "commit" TEXT, begun_at REAL, parent
  INTEGER, resume_step INTEGER, resume_seq INTEGER, resume_checkpoint TEXT, host TEXT, boot_id
  TEXT, pid_namespace TEXT, device TEXT, pid INTEGER, pid_start INTEGER, job TEXT, launched_at
  REAL, started_at REAL, worker TEXT, worker_version TEXT, worker_pid INTEGER, numerics TEXT,
  backbone_digest TEXT, data_digests TEXT, checkpoint_step INTEGER, checkpoint_seq INTEGER,
  checkpoint_path TEXT, event_outcome TEXT, event_kind TEXT, event_reason TEXT, event_at REAL,
  finished_step INTEGER, peak_memory_mib REAL, device_memory_mib REAL, train_seconds REAL, note
  TEXT, ending_outcome TEXT, ending_reason TEXT, exit_code INTEGER, signal INTEGER, log_tail TEXT,
  ending_at REAL, events_offset INTEGER NOT NULL DEFAULT 0, events_next_seq INTEGER NOT NULL
  DEFAULT 0, events_lines INTEGER NOT NULL DEFAULT 0, events_closed INTEGER NOT NULL DEFAULT 0,
  counts_to INTEGER, outcome TEXT AS (coalesce(event_outcome, ending_outcome, 'open')) VIRTUAL,
  reason TEXT AS (coalesce(event_reason, ending_reason)) VIRTUAL, ended_at REAL AS
  (coalesce(event_at, ending_at)) VIRTUAL, retries INTEGER, UNIQUE (trial, number));
CREATE TABLE progress ( attempt INTEGER PRIMARY KEY REFERENCES attempts, step INTEGER NOT NULL, of
  INTEGER NOT NULL, loss REAL, time REAL NOT NULL);
CREATE TABLE artifacts ( attempt INTEGER PRIMARY KEY REFERENCES attempts, path TEXT, bls_bits
  REAL, stored_bits INTEGER);
CREATE TABLE series ( key INTEGER PRIMARY KEY, split TEXT NOT NULL, task TEXT NOT NULL, name TEXT
  NOT NULL, UNIQUE (split, task, name));
CREATE TABLE metric_values ( attempt INTEGER NOT NULL REFERENCES attempts, seq INTEGER NOT NULL,
  step INTEGER NOT NULL, series INTEGER NOT NULL REFERENCES series, value REAL, PRIMARY KEY
  (attempt, seq)) WITHOUT ROWID;
CREATE TABLE retries ( trial INTEGER NOT NULL REFERENCES trials, after_attempt INTEGER NOT NULL,
  PRIMARY KEY (trial, after_attempt)) WITHOUT ROWID;
CREATE TABLE former_sweep_trials (
  sweep INTEGER NOT NULL REFERENCES sweeps, trial INTEGER NOT NULL REFERENCES trials,
  variant TEXT NOT NULL, place INTEGER NOT NULL, left_at REAL NOT NULL,
  PRIMARY KEY (sweep, trial, variant)) WITHOUT ROWID;
CREATE TABLE provenance_texts (key INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE provenance ( attempt INTEGER PRIMARY KEY REFERENCES attempts, petlab INTEGER
  REFERENCES provenance_texts, worker INTEGER REFERENCES provenance_texts);
CREATE TABLE sweep_texts (digest TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE renewals ( trial INTEGER NOT NULL REFERENCES trials, after_attempt INTEGER NOT NULL,
  discarded INTEGER NOT NULL, why TEXT, decided_at REAL, PRIMARY KEY (trial, after_attempt,
  discarded)) WITHOUT ROWID;
CREATE TABLE hidden_trials ( trial INTEGER PRIMARY KEY REFERENCES trials, why TEXT, decided_at
  REAL);
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE trial_changes (
  trial INTEGER PRIMARY KEY REFERENCES trials, changes INTEGER NOT NULL);
CREATE TABLE forgotten_attempts (
  key INTEGER PRIMARY KEY, trial INTEGER NOT NULL REFERENCES trials, number INTEGER NOT NULL);
INSERT INTO sweeps ("key", "name", "about", "file", "digest", "recorded_at") VALUES (1, 'old', 'about it', 'old.yaml', 'sha256:s', 1000.5);
INSERT INTO trials ("key", "trial_id", "config", "backbone_digest", "bls_bits", "stored_bits", "cancelled", "retried_after", "result_attempt", "user", "tasks", "backbone", "seed", "module_kind", "module_share", "module_mask", "module_bottleneck", "training_epochs", "training_batch_size", "training_gradient_accumulation", "training_learning_rate", "training_weight_decay", "training_warmup_ratio", "training_max_grad_norm", "training_dropout", "training_checkpoint_every", "data_max_tokens", "data_max_train_examples", "data_max_validation_examples", "data_max_test_examples", "module_sparsity_ratio", "training_mask_learning_rate", "module_rank", "module_alpha", "module_prefix_length", "module_prefix_hidden") VALUES (1, 't1', '{"backbone":"minilm","task":"cola","seed":1,"module":{"kind":"adapter","share":true,"mask":"none","bottleneck":64},
"training":{"epochs":20,"batch_size":128,"gradient_accumulation":1,"learning_rate":0.0001,"weight_decay":0.1,"warmup_ratio":0.1,"max_grad_norm":1.0,"dropout":0.25,"checkpoint_every":0},
"data":{"max_tokens":128,"max_train_examples":0,"max_validation_examples":0,"max_test_examples":0},"user":{"width":3}}', 'sha256:b', 1000.0, 1024, 0, 0, 2, '{"width":3}', 'cola', 'minilm', 1, 'adapter', 1, 'none', 64, 20, 128, 1, 0.0001, 0.1, 0.1, 1.0, 0.25, 0, 128, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO trials ("key", "trial_id", "config", "backbone_digest", "bls_bits", "stored_bits", "cancelled", "retried_after", "result_attempt", "user", "tasks", "backbone", "seed", "module_kind", "module_share", "module_mask", "module_bottleneck", "training_epochs", "training_batch_size", "training_gradient_accumulation", "training_learning_rate", "training_weight_decay", "training_warmup_ratio", "training_max_grad_norm", "training_dropout", "training_checkpoint_every", "data_max_tokens", "data_max_train_examples", "data_max_validation_examples", "data_max_test_examples", "module_sparsity_ratio", "training_mask_learning_rate", "module_rank", "module_alpha", "module_prefix_length", "module_prefix_hidden") VALUES (2, 't2', '{"backbone":"minilm","task":"cola","seed":2,"module":{"kind":"lora","share":false,"mask":"none","rank":32,"alpha":32.0},
"training":{"epochs":20,"batch_size":128,"gradient_accumulation":1,"learning_rate":0.0001,"weight_decay":0.1,"warmup_ratio":0.1,"max_grad_norm":1.0,"dropout":-1.0,"checkpoint_every":0},
"data":{"max_tokens":64,"max_train_examples":0,"max_validation_examples":0,"max_test_examples":0},"user":{"width":3}}', 'sha256:b', 1000.0, 1024, 0, 1, NULL, '{"width":3}', 'cola', 'minilm', 2, 'lora', 0, 'none', NULL, 20, 128, 1, 0.0001, 0.1, 0.1, 1.0, -1.0, 0, 64, 0, 0, 0, NULL, NULL, 32, 32.0, NULL, NULL);
INSERT INTO trials ("key", "trial_id", "config", "backbone_digest", "bls_bits", "stored_bits", "cancelled", "retried_after", "result_attempt", "user", "tasks", "backbone", "seed", "module_kind", "module_share", "module_mask", "module_bottleneck", "training_epochs", "training_batch_size", "training_gradient_accumulation", "training_learning_rate", "training_weight_decay", "training_warmup_ratio", "training_max_grad_norm", "training_dropout", "training_checkpoint_every", "data_max_tokens", "data_max_train_examples", "data_max_validation_examples", "data_max_test_examples", "module_sparsity_ratio", "training_mask_learning_rate", "module_rank", "module_alpha", "module_prefix_length", "module_prefix_hidden") VALUES (3, 't3', '{"backbone":"minilm","task":"cola","seed":3,"module":{"kind":"adapter","share":false,"mask":"none","bottleneck":8},
"training":{"epochs":20,"batch_size":128,"gradient_accumulation":1,"learning_rate":0.0001,"weight_decay":0.1,"warmup_ratio":0.1,"max_grad_norm":1.0,"dropout":-1.0,"checkpoint_every":0},
"data":{"max_tokens":128,"max_train_examples":0,"max_validation_examples":0,"max_test_examples":0},"user":{"width":3}}', 'sha256:b', 1000.0, 1024, 1, 0, NULL, '{"width":3}', 'cola', 'minilm', 3, 'adapter', 0, 'none', 8, 20, 128, 1, 0.0001, 0.1, 0.1, 1.0, -1.0, 0, 128, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO sweep_trials ("sweep", "trial", "variant", "place") VALUES (1, 1, 'a', 0);
INSERT INTO sweep_trials ("sweep", "trial", "variant", "place") VALUES (1, 2, 'b', 1);
INSERT INTO sweep_trials ("sweep", "trial", "variant", "place") VALUES (1, 3, '', 2);
INSERT INTO attempts ("key", "trial", "number", "sweep", "owner", "launcher", "commit", "begun_at", "parent", "resume_step", "resume_seq", "resume_checkpoint", "host", "boot_id", "pid_namespace", "device", "pid", "pid_start", "job", "launched_at", "started_at", "worker", "worker_version", "worker_pid", "numerics", "backbone_digest", "data_digests", "checkpoint_step", "checkpoint_seq", "checkpoint_path", "event_outcome", "event_kind", "event_reason", "event_at", "finished_step", "peak_memory_mib", "device_memory_mib", "train_seconds", "note", "ending_outcome", "ending_reason", "exit_code", "signal", "log_tail", "ending_at", "events_offset", "events_next_seq", "events_lines", "events_closed", "counts_to", "retries") VALUES (1, 1, 1, 'old', 'me', 'local', NULL, 10.0, NULL, NULL, NULL, NULL, 'here', 'boot', 'pid:[1]', 'cpu-0', NULL, NULL, NULL, NULL, 11.0, 'w', NULL, NULL, '{"version":"1"}', NULL, '{"cola":"sha256:d"}', 10, 2, 'checkpoint/step-10', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'stopped', 'asked to stop', NULL, NULL, NULL, 12.0, 100, 4, 4, 0, 2, NULL);
INSERT INTO attempts ("key", "trial", "number", "sweep", "owner", "launcher", "commit", "begun_at", "parent", "resume_step", "resume_seq", "resume_checkpoint", "host", "boot_id", "pid_namespace", "device", "pid", "pid_start", "job", "launched_at", "started_at", "worker", "worker_version", "worker_pid", "numerics", "backbone_digest", "data_digests", "checkpoint_step", "checkpoint_seq", "checkpoint_path", "event_outcome", "event_kind", "event_reason", "event_at", "finished_step", "peak_memory_mib", "device_memory_mib", "train_seconds", "note", "ending_outcome", "ending_reason", "exit_code", "signal", "log_tail", "ending_at", "events_offset", "events_next_seq", "events_lines", "events_closed", "counts_to", "retries") VALUES (2, 1, 2, 'old', 'me', 'local', NULL, 20.0, 1, 10, 2, 'checkpoint/step-10', 'here', 'boot', 'pid:[1]', 'cpu-0', NULL, NULL, NULL, NULL, 21.0, 'w', NULL, NULL, '{"version":"1"}', NULL, '{"cola":"sha256:d"}', NULL, NULL, NULL, 'finished', NULL, NULL, 25.0, 30, 500.0, 700.0, 4.5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 200, 3, 3, 1, 9223372036854775807, NULL);
INSERT INTO attempts ("key", "trial", "number", "sweep", "owner", "launcher", "commit", "begun_at", "parent", "resume_step", "resume_seq", "resume_checkpoint", "host", "boot_id", "pid_namespace", "device", "pid", "pid_start", "job", "launched_at", "started_at", "worker", "worker_version", "worker_pid", "numerics", "backbone_digest", "data_digests", "checkpoint_step", "checkpoint_seq", "checkpoint_path", "event_outcome", "event_kind", "event_reason", "event_at", "finished_step", "peak_memory_mib", "device_memory_mib", "train_seconds", "note", "ending_outcome", "ending_reason", "exit_code", "signal", "log_tail", "ending_at", "events_offset", "events_next_seq", "events_lines", "events_closed", "counts_to", "retries") VALUES (3, 2, 1, 'old', 'me', 'local', NULL, 30.0, NULL, NULL, NULL, NULL, 'here', 'boot', 'pid:[1]', 'cpu-0', NULL, NULL, NULL, NULL, 31.0, 'w', NULL, NULL, '{"version":"1"}', NULL, '{"cola":"sha256:d"}', NULL, NULL, NULL, 'failed', 'error', 'no data', 32.0, NULL, NULL, NULL, NULL, NULL, 'failed', 'no data', NULL, NULL, NULL, 32.0, 90, 2, 2, 1, NULL, NULL);
INSERT INTO progress ("attempt", "step", "of", "loss", "time") VALUES (2, 30, 30, 0.125, 24.0);
INSERT INTO artifacts ("attempt", "path", "bls_bits", "stored_bits") VALUES (2, 'artifact.petl', 990.0, 1016);
INSERT INTO series ("key", "split", "task", "name") VALUES (1, 'train', 'cola', 'loss');
INSERT INTO series ("key", "split", "task", "name") VALUES (2, 'test', 'cola', 'matthews');
INSERT INTO metric_values ("attempt", "seq", "step", "series", "value") VALUES (1, 1, 10, 1, 0.5);
INSERT INTO metric_values ("attempt", "seq", "step", "series", "value") VALUES (1, 3, 20, 1, 0.75);
INSERT INTO metric_values ("attempt", "seq", "step", "series", "value") VALUES (2, 1, 30, 1, 0.125);
INSERT INTO metric_values ("attempt", "seq", "step", "series", "value") VALUES (2, 2, 30, 2, NULL);
INSERT INTO retries ("trial", "after_attempt") VALUES (2, 1);
INSERT INTO settings ("name", "value") VALUES ('runs', 'runs');
CREATE INDEX sweep_trials_by_trial ON sweep_trials (trial);
CREATE INDEX attempts_open ON attempts (outcome) WHERE outcome = 'open';
CREATE INDEX trials_decided ON trials (key) WHERE cancelled != 0 OR retried_after != 0;
CREATE INDEX forgotten_attempts_by_trial ON forgotten_attempts (trial, number);
CREATE TRIGGER attempt_made AFTER INSERT ON attempts BEGIN
  INSERT INTO trial_changes VALUES (NEW.trial, 1)
    ON CONFLICT (trial) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER attempt_over AFTER UPDATE OF event_outcome, ending_outcome ON attempts
BEGIN
  INSERT INTO trial_changes VALUES (NEW.trial, 1)
    ON CONFLICT (trial) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER attempt_forgotten AFTER DELETE ON attempts BEGIN
  INSERT INTO trial_changes VALUES (OLD.trial, 1)
    ON CONFLICT (trial) DO UPDATE SET changes = changes + 1;
  INSERT INTO forgotten_attempts VALUES (OLD.key, OLD.trial, OLD.number);
END;
CREATE TRIGGER trial_decided AFTER UPDATE OF cancelled, retried_after ON trials
WHEN OLD.cancelled IS NOT NEW.cancelled OR OLD.retried_after IS NOT NEW.retried_after BEGIN
  INSERT INTO trial_changes VALUES (NEW.key, 1)
    ON CONFLICT (trial) DO UPDATE SET changes = changes + 1;
END;
CREATE VIEW metrics AS SELECT t.trial_id, a.number AS attempt, v.seq, v.step, s.split, s.task, s.name, v.value FROM trials t CROSS JOIN attempts a ON a.trial = t.key CROSS JOIN metric_values v ON v.attempt = a.key CROSS JOIN series s ON s.key = v.series;
CREATE VIEW results AS SELECT t.trial_id, a.number AS attempt, v.seq, v.step, s.split, s.task, s.name, v.value, t."tasks", t."backbone", t."seed", t."module_kind", t."module_share", t."module_mask", t."module_bottleneck", t."training_epochs", t."training_batch_size", t."training_gradient_accumulation", t."training_learning_rate", t."training_weight_decay", t."training_warmup_ratio", t."training_max_grad_norm", t."training_dropout", t."training_checkpoint_every", t."data_max_tokens", t."data_max_train_examples", t."data_max_validation_examples", t."data_max_test_examples", t."module_sparsity_ratio", t."training_mask_learning_rate", t."module_rank", t."module_alpha", t."module_prefix_length", t."module_prefix_hidden", t.user, coalesce(f.bls_bits, t.bls_bits) AS bls_bits, coalesce(f.stored_bits, t.stored_bits) AS stored_bits, a.numerics, a.data_digests, (SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/' || a.number AS folder, (SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/' || (SELECT number FROM attempts WHERE key = t.result_attempt) || '/' || f.path AS artifact, (SELECT o.step FROM metric_values o CROSS JOIN series p ON p.key = o.series WHERE o.attempt = t.result_attempt AND p.split = 'test' ORDER BY o.seq DESC LIMIT 1) AS selected_step, (SELECT train_seconds FROM attempts WHERE key = t.result_attempt) AS train_seconds FROM trials t LEFT JOIN artifacts f ON f.attempt = t.result_attempt CROSS JOIN attempts a ON a.trial = t.key AND a.counts_to IS NOT NULL CROSS JOIN metric_values v ON v.attempt = a.key AND v.seq <= a.counts_to CROSS JOIN series s ON s.key = v.series;
CREATE VIEW sweep_results AS SELECT w.name AS sweep, nullif(m.variant, '') AS variant, t.trial_id, a.number AS attempt, v.seq, v.step, s.split, s.task, s.name, v.value, t."tasks", t."backbone", t."seed", t."module_kind", t."module_share", t."module_mask", t."module_bottleneck", t."training_epochs", t."training_batch_size", t."training_gradient_accumulation", t."training_learning_rate", t."training_weight_decay", t."training_warmup_ratio", t."training_max_grad_norm", t."training_dropout", t."training_checkpoint_every", t."data_max_tokens", t."data_max_train_examples", t."data_max_validation_examples", t."data_max_test_examples", t."module_sparsity_ratio", t."training_mask_learning_rate", t."module_rank", t."module_alpha", t."module_prefix_length", t."module_prefix_hidden", t.user, coalesce(f.bls_bits, t.bls_bits) AS bls_bits, coalesce(f.stored_bits, t.stored_bits) AS stored_bits, a.numerics, a.data_digests, (SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/' || a.number AS folder, (SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/' || (SELECT number FROM attempts WHERE key = t.result_attempt) || '/' || f.path AS artifact, (SELECT o.step FROM metric_values o CROSS JOIN series p ON p.key = o.series WHERE o.attempt = t.result_attempt AND p.split = 'test' ORDER BY o.seq DESC LIMIT 1) AS selected_step, (SELECT train_seconds FROM attempts WHERE key = t.result_attempt) AS train_seconds FROM sweeps w CROSS JOIN sweep_trials m ON m.sweep = w.key CROSS JOIN trials t ON t.key = m.trial LEFT JOIN artifacts f ON f.attempt = t.result_attempt CROSS JOIN attempts a ON a.trial = t.key AND a.counts_to IS NOT NULL CROSS JOIN metric_values v ON v.attempt = a.key AND v.seq <= a.counts_to CROSS JOIN series s ON s.key = v.series;
CREATE VIEW former_sweep_results AS SELECT w.name AS sweep, nullif(m.variant, '') AS variant, t.trial_id, a.number AS attempt, v.seq, v.step, s.split, s.task, s.name, v.value, t."tasks", t."backbone", t."seed", t."module_kind", t."module_share", t."module_mask", t."module_bottleneck", t."training_epochs", t."training_batch_size", t."training_gradient_accumulation", t."training_learning_rate", t."training_weight_decay", t."training_warmup_ratio", t."training_max_grad_norm", t."training_dropout", t."training_checkpoint_every", t."data_max_tokens", t."data_max_train_examples", t."data_max_validation_examples", t."data_max_test_examples", t."module_sparsity_ratio", t."training_mask_learning_rate", t."module_rank", t."module_alpha", t."module_prefix_length", t."module_prefix_hidden", t.user, coalesce(f.bls_bits, t.bls_bits) AS bls_bits, coalesce(f.stored_bits, t.stored_bits) AS stored_bits, a.numerics, a.data_digests, (SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/' || a.number AS folder, (SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/' || (SELECT number FROM attempts WHERE key = t.result_attempt) || '/' || f.path AS artifact, (SELECT o.step FROM metric_values o CROSS JOIN series p ON p.key = o.series WHERE o.attempt = t.result_attempt AND p.split = 'test' ORDER BY o.seq DESC LIMIT 1) AS selected_step, (SELECT train_seconds FROM attempts WHERE key = t.result_attempt) AS train_seconds FROM sweeps w CROSS JOIN former_sweep_trials m ON m.sweep = w.key CROSS JOIN trials t ON t.key = m.trial LEFT JOIN artifacts f ON f.attempt = t.result_attempt CROSS JOIN attempts a ON a.trial = t.key AND a.counts_to IS NOT NULL CROSS JOIN metric_values v ON v.attempt = a.key AND v.seq <= a.counts_to CROSS JOIN series s ON s.key = v.series;
