-- A database of version 2 as the last petlab of that version left it.
PRAGMA application_id = 1885697132;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE artifacts ( attempt INTEGER PRIMARY KEY REFERENCES attempts, path TEXT, bls_bits
  REAL, stored_bits INTEGER);
INSERT INTO "artifacts" VALUES(2,'artifact.petl',990.0,1016);
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
INSERT INTO "attempts" VALUES(1,1,1,'old','me','local',NULL,10.0,NULL,NULL,NULL,NULL,'here','boot','pid:[1]','cpu-0',NULL,NULL,NULL,NULL,11.0,'w',NULL,NULL,'{"version":"1"}',NULL,'{"cola":"sha256:d"}',10,2,'checkpoint/step-10',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'stopped','asked to stop',NULL,NULL,NULL,12.0,100,4,4,0,2,NULL);
INSERT INTO "attempts" VALUES(2,1,2,'old','me','local',NULL,20.0,1,10,2,'checkpoint/step-10','here','boot','pid:[1]','cpu-0',NULL,NULL,NULL,NULL,21.0,'w',NULL,NULL,'{"version":"1"}',NULL,'{"cola":"sha256:d"}',NULL,NULL,NULL,'finished',NULL,NULL,25.0,30,500.0,700.0,4.5,NULL,NULL,NULL,NULL,NULL,NULL,NULL,200,3,3,1,9223372036854775807,NULL);
INSERT INTO "attempts" VALUES(3,2,1,'old','me','local',NULL,30.0,NULL,NULL,NULL,NULL,'here','boot','pid:[1]','cpu-0',NULL,NULL,NULL,NULL,31.0,'w',NULL,NULL,'{"version":"1"}',NULL,'{"cola":"sha256:d"}',NULL,NULL,NULL,'failed','error','no data',32.0,NULL,NULL,NULL,NULL,NULL,'failed','no data',NULL,NULL,NULL,32.0,90,2,2,1,NULL,NULL);
CREATE TABLE example_texts (key INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE examples (
  attempt INTEGER PRIMARY KEY REFERENCES attempts,
  text INTEGER NOT NULL REFERENCES example_texts);
CREATE TABLE forgotten_attempts (
  key INTEGER PRIMARY KEY, trial INTEGER NOT NULL REFERENCES trials, number INTEGER NOT NULL);
CREATE TABLE former_sweep_trials (
  sweep INTEGER NOT NULL REFERENCES sweeps, trial INTEGER NOT NULL REFERENCES trials,
  variant TEXT NOT NULL, place INTEGER NOT NULL, left_at REAL NOT NULL,
  PRIMARY KEY (sweep, trial, variant)) WITHOUT ROWID;
CREATE TABLE hidden_trials ( trial INTEGER PRIMARY KEY REFERENCES trials, why TEXT, decided_at
  REAL);
CREATE TABLE loss_points (
  attempt INTEGER NOT NULL REFERENCES attempts, place INTEGER NOT NULL, seq INTEGER NOT NULL,
  step INTEGER NOT NULL, steps INTEGER NOT NULL, reports INTEGER NOT NULL, loss REAL,
  PRIMARY KEY (attempt, place)) WITHOUT ROWID;
CREATE TABLE metric_values ( attempt INTEGER NOT NULL REFERENCES attempts, seq INTEGER NOT NULL,
  step INTEGER NOT NULL, series INTEGER NOT NULL REFERENCES series, value REAL, PRIMARY KEY
  (attempt, seq)) WITHOUT ROWID;
INSERT INTO "metric_values" VALUES(1,1,10,1,0.5);
INSERT INTO "metric_values" VALUES(1,3,20,1,0.75);
INSERT INTO "metric_values" VALUES(2,1,30,1,0.125);
INSERT INTO "metric_values" VALUES(2,2,30,2,NULL);
CREATE TABLE progress ( attempt INTEGER PRIMARY KEY REFERENCES attempts, step INTEGER NOT NULL, of
  INTEGER NOT NULL, loss REAL, time REAL NOT NULL);
INSERT INTO "progress" VALUES(2,30,30,0.125,24.0);
CREATE TABLE provenance ( attempt INTEGER PRIMARY KEY REFERENCES attempts, petlab INTEGER
  REFERENCES provenance_texts, worker INTEGER REFERENCES provenance_texts);
CREATE TABLE provenance_texts (key INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE renewals ( trial INTEGER NOT NULL REFERENCES trials, after_attempt INTEGER NOT NULL,
  discarded INTEGER NOT NULL, why TEXT, decided_at REAL, PRIMARY KEY (trial, after_attempt,
  discarded)) WITHOUT ROWID;
CREATE TABLE retries ( trial INTEGER NOT NULL REFERENCES trials, after_attempt INTEGER NOT NULL,
  PRIMARY KEY (trial, after_attempt)) WITHOUT ROWID;
INSERT INTO "retries" VALUES(2,1);
CREATE TABLE selected_values (trial INTEGER NOT NULL REFERENCES trials, series INTEGER NOT NULL REFERENCES series, attempt INTEGER NOT NULL REFERENCES attempts, seq INTEGER NOT NULL, step INTEGER NOT NULL, value REAL, PRIMARY KEY (trial, series)) WITHOUT ROWID;
INSERT INTO "selected_values" VALUES(1,1,2,1,30,0.125);
INSERT INTO "selected_values" VALUES(1,2,2,2,30,NULL);
CREATE TABLE series ( key INTEGER PRIMARY KEY, split TEXT NOT NULL, task TEXT NOT NULL, name TEXT
  NOT NULL, UNIQUE (split, task, name));
INSERT INTO "series" VALUES(1,'train','cola','loss');
INSERT INTO "series" VALUES(2,'test','cola','matthews');
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "settings" VALUES('fields_filled','43');
INSERT INTO "settings" VALUES('values_selected','1');
CREATE TABLE sweep_remarks (
  sweep INTEGER NOT NULL REFERENCES sweeps, time REAL NOT NULL, what TEXT NOT NULL,
  text TEXT NOT NULL, PRIMARY KEY (sweep, time, what, text)) WITHOUT ROWID;
CREATE TABLE sweep_tags (
  sweep INTEGER NOT NULL REFERENCES sweeps, tag TEXT NOT NULL,
  PRIMARY KEY (sweep, tag)) WITHOUT ROWID;
CREATE TABLE sweep_texts (digest TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sweep_trials ( sweep INTEGER NOT NULL REFERENCES sweeps, trial INTEGER NOT NULL
  REFERENCES trials, variant TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (sweep, trial,
  variant)) WITHOUT ROWID;
INSERT INTO "sweep_trials" VALUES(1,1,'a',0);
INSERT INTO "sweep_trials" VALUES(1,2,'b',1);
INSERT INTO "sweep_trials" VALUES(1,3,'',2);
CREATE TABLE sweeps ( key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, about TEXT, file TEXT,
  digest TEXT, recorded_at REAL, overrides TEXT);
INSERT INTO "sweeps" VALUES(1,'old','about it','old.yaml','sha256:s',1000.5,NULL);
CREATE TABLE task_names (task TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO "task_names" VALUES('cola');
CREATE TABLE trial_changes (
  trial INTEGER PRIMARY KEY REFERENCES trials, changes INTEGER NOT NULL);
CREATE TABLE trial_remarks (
  trial INTEGER NOT NULL REFERENCES trials, time REAL NOT NULL, what TEXT NOT NULL,
  text TEXT NOT NULL, PRIMARY KEY (trial, time, what, text)) WITHOUT ROWID;
CREATE TABLE trial_tags (
  trial INTEGER NOT NULL REFERENCES trials, tag TEXT NOT NULL,
  PRIMARY KEY (trial, tag)) WITHOUT ROWID;
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
  "module_prefix_length" INTEGER, "module_prefix_hidden" INTEGER, "module_combine" TEXT, "module_cross_attention" INTEGER, "training_steps" INTEGER, "training_warmup_steps" INTEGER, "training_label_smoothing" REAL, "training_evaluate_every" INTEGER, "data_max_target_tokens" INTEGER, "decoding_beams" INTEGER, "decoding_length_penalty" REAL, "decoding_early_stopping" INTEGER, "decoding_min_tokens" INTEGER, "decoding_max_tokens" INTEGER, "decoding_no_repeat_ngrams" INTEGER, "evaluation_keep_predictions" INTEGER, "module_hyper_embedding" INTEGER, "module_hyper_hidden" INTEGER, "module_hyper_projected" INTEGER, "training_compute" TEXT);
INSERT INTO "trials" VALUES(1,'t1','{"backbone":"minilm","task":"cola","seed":1,"module":{"kind":"adapter","share":true,"mask":"none","bottleneck":64},
"training":{"epochs":20,"batch_size":128,"gradient_accumulation":1,"learning_rate":0.0001,"weight_decay":0.1,"warmup_ratio":0.1,"max_grad_norm":1.0,"dropout":0.25,"checkpoint_every":0},
"data":{"max_tokens":128,"max_train_examples":0,"max_validation_examples":0,"max_test_examples":0},"user":{"width":3}}','sha256:b',1000.0,1024,0,0,2,'{"width":3}','cola','minilm',1,'adapter',1,'none',64,20,128,1,0.0001,0.1,0.1,1.0,0.25,0,128,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0.0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'float32');
INSERT INTO "trials" VALUES(2,'t2','{"backbone":"minilm","task":"cola","seed":2,"module":{"kind":"lora","share":false,"mask":"none","rank":32,"alpha":32.0},
"training":{"epochs":20,"batch_size":128,"gradient_accumulation":1,"learning_rate":0.0001,"weight_decay":0.1,"warmup_ratio":0.1,"max_grad_norm":1.0,"dropout":-1.0,"checkpoint_every":0},
"data":{"max_tokens":64,"max_train_examples":0,"max_validation_examples":0,"max_test_examples":0},"user":{"width":3}}','sha256:b',1000.0,1024,0,1,NULL,'{"width":3}','cola','minilm',2,'lora',0,'none',NULL,20,128,1,0.0001,0.1,0.1,1.0,-1.0,0,64,0,0,0,NULL,NULL,32,32.0,NULL,NULL,NULL,0,0,0,0.0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'float32');
INSERT INTO "trials" VALUES(3,'t3','{"backbone":"minilm","task":"cola","seed":3,"module":{"kind":"adapter","share":false,"mask":"none","bottleneck":8},
"training":{"epochs":20,"batch_size":128,"gradient_accumulation":1,"learning_rate":0.0001,"weight_decay":0.1,"warmup_ratio":0.1,"max_grad_norm":1.0,"dropout":-1.0,"checkpoint_every":0},
"data":{"max_tokens":128,"max_train_examples":0,"max_validation_examples":0,"max_test_examples":0},"user":{"width":3}}','sha256:b',1000.0,1024,1,0,NULL,'{"width":3}','cola','minilm',3,'adapter',0,'none',8,20,128,1,0.0001,0.1,0.1,1.0,-1.0,0,128,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,0.0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'float32');
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
CREATE TRIGGER trial_renewed AFTER INSERT ON renewals BEGIN
  INSERT INTO trial_changes VALUES (NEW.trial, 1)
    ON CONFLICT (trial) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER result_uncounted AFTER UPDATE OF counts_to ON attempts WHEN OLD.counts_to IS NOT NULL AND NEW.counts_to IS NULL BEGIN DELETE FROM selected_values WHERE trial = NEW.trial; END;
CREATE TRIGGER result_counted AFTER UPDATE OF counts_to ON attempts WHEN NEW.counts_to IS NOT NULL BEGIN DELETE FROM selected_values WHERE trial = NEW.trial; INSERT INTO selected_values SELECT trial, series, attempt, seq, step, value FROM (SELECT *, max(((NOT is_test AND step IS (SELECT step FROM counted_values WHERE trial = NEW.trial AND is_test ORDER BY is_own DESC, place DESC LIMIT 1)) << 62) + place) FROM counted_values WHERE trial = NEW.trial GROUP BY series); END;
CREATE TRIGGER trial_inserted AFTER INSERT ON trials BEGIN INSERT INTO task_names SELECT DISTINCT value FROM json_each('[' || replace(json_quote(NEW.tasks), ',', '","') || ']') WHERE value <> '' AND value NOT IN (SELECT task FROM task_names); END;
CREATE TRIGGER trial_tasks_changed AFTER UPDATE OF tasks ON trials BEGIN INSERT INTO task_names SELECT DISTINCT value FROM json_each('[' || replace(json_quote(NEW.tasks), ',', '","') || ']') WHERE value <> '' AND value NOT IN (SELECT task FROM task_names); END;
CREATE VIEW metrics AS SELECT t.trial_id, a.number AS attempt, v.seq, v.step, s.split, s.task, s.name, v.value FROM trials t CROSS JOIN attempts a ON a.trial = t.key CROSS JOIN metric_values v ON v.attempt = a.key CROSS JOIN series s ON s.key = v.series;
CREATE VIEW results AS SELECT t.trial_id, a.number AS attempt, v.seq, v.step, s.split, s.task, s.name, v.value, t."tasks", t."backbone", t."seed", t."module_kind", t."module_share", t."module_mask", t."module_bottleneck", t."training_epochs", t."training_batch_size", t."training_gradient_accumulation", t."training_learning_rate", t."training_weight_decay", t."training_warmup_ratio", t."training_max_grad_norm", t."training_dropout", t."training_checkpoint_every", t."data_max_tokens", t."data_max_train_examples", t."data_max_validation_examples", t."data_max_test_examples", t."module_sparsity_ratio", t."training_mask_learning_rate", t."module_rank", t."module_alpha", t."module_prefix_length", t."module_prefix_hidden", t."module_combine", t."module_cross_attention", t."training_steps", t."training_warmup_steps", t."training_label_smoothing", t."training_evaluate_every", t."data_max_target_tokens", t."decoding_beams", t."decoding_length_penalty", t."decoding_early_stopping", t."decoding_min_tokens", t."decoding_max_tokens", t."decoding_no_repeat_ngrams", t."evaluation_keep_predictions", t."module_hyper_embedding", t."module_hyper_hidden", t."module_hyper_projected", t."training_compute", t.user, coalesce(f.bls_bits, t.bls_bits) AS bls_bits, coalesce(f.stored_bits, t.stored_bits) AS stored_bits, a.numerics, a.data_digests, (SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/' || a.number AS folder, (SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/' || (SELECT number FROM attempts WHERE key = t.result_attempt) || '/' || f.path AS artifact, (SELECT o.step FROM selected_values o CROSS JOIN trials q ON q.key = o.trial CROSS JOIN attempts b ON b.key = o.attempt CROSS JOIN series p ON p.key = o.series WHERE o.trial = t.key AND p.split = 'test' ORDER BY instr(',' || q.tasks || ',', ',' || p.task || ',') > 0 DESC, b.number DESC, o.seq DESC LIMIT 1) AS selected_step, (SELECT train_seconds FROM attempts WHERE key = t.result_attempt) AS train_seconds, (SELECT group_concat(tag) FROM (SELECT g.tag AS tag FROM trial_tags g WHERE g.trial = t.key UNION SELECT g.tag FROM sweep_trials p CROSS JOIN sweep_tags g ON g.sweep = p.sweep WHERE p.trial = t.key ORDER BY 1)) AS tags FROM trials t LEFT JOIN artifacts f ON f.attempt = t.result_attempt CROSS JOIN attempts a ON a.trial = t.key AND a.counts_to IS NOT NULL CROSS JOIN metric_values v ON v.attempt = a.key AND v.seq <= a.counts_to CROSS JOIN series s ON s.key = v.series WHERE NOT EXISTS (SELECT 1 FROM hidden_trials h WHERE h.trial = t.key);
CREATE VIEW sweep_results AS SELECT w.name AS sweep, nullif(m.variant, '') AS variant, t.trial_id, a.number AS attempt, v.seq, v.step, s.split, s.task, s.name, v.value, t."tasks", t."backbone", t."seed", t."module_kind", t."module_share", t."module_mask", t."module_bottleneck", t."training_epochs", t."training_batch_size", t."training_gradient_accumulation", t."training_learning_rate", t."training_weight_decay", t."training_warmup_ratio", t."training_max_grad_norm", t."training_dropout", t."training_checkpoint_every", t."data_max_tokens", t."data_max_train_examples", t."data_max_validation_examples", t."data_max_test_examples", t."module_sparsity_ratio", t."training_mask_learning_rate", t."module_rank", t."module_alpha", t."module_prefix_length", t."module_prefix_hidden", t."module_combine", t."module_cross_attention", t."training_steps", t."training_warmup_steps", t."training_label_smoothing", t."training_evaluate_every", t."data_max_target_tokens", t."decoding_beams", t."decoding_length_penalty", t."decoding_early_stopping", t."decoding_min_tokens", t."decoding_max_tokens", t."decoding_no_repeat_ngrams", t."evaluation_keep_predictions", t."module_hyper_embedding", t."module_hyper_hidden", t."module_hyper_projected", t."training_compute", t.user, coalesce(f.bls_bits, t.bls_bits) AS bls_bits, coalesce(f.stored_bits, t.stored_bits) AS stored_bits, a.numerics, a.data_digests, (SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/' || a.number AS folder, (SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/' || (SELECT number FROM attempts WHERE key = t.result_attempt) || '/' || f.path AS artifact, (SELECT o.step FROM selected_values o CROSS JOIN trials q ON q.key = o.trial CROSS JOIN attempts b ON b.key = o.attempt CROSS JOIN series p ON p.key = o.series WHERE o.trial = t.key AND p.split = 'test' ORDER BY instr(',' || q.tasks || ',', ',' || p.task || ',') > 0 DESC, b.number DESC, o.seq DESC LIMIT 1) AS selected_step, (SELECT train_seconds FROM attempts WHERE key = t.result_attempt) AS train_seconds, (SELECT group_concat(tag) FROM (SELECT g.tag AS tag FROM trial_tags g WHERE g.trial = t.key UNION SELECT g.tag FROM sweep_trials p CROSS JOIN sweep_tags g ON g.sweep = p.sweep WHERE p.trial = t.key ORDER BY 1)) AS tags FROM sweeps w CROSS JOIN sweep_trials m ON m.sweep = w.key CROSS JOIN trials t ON t.key = m.trial LEFT JOIN artifacts f ON f.attempt = t.result_attempt CROSS JOIN attempts a ON a.trial = t.key AND a.counts_to IS NOT NULL CROSS JOIN metric_values v ON v.attempt = a.key AND v.seq <= a.counts_to CROSS JOIN series s ON s.key = v.series WHERE NOT EXISTS (SELECT 1 FROM hidden_trials h WHERE h.trial = t.key);
CREATE VIEW former_sweep_results AS SELECT w.name AS sweep, nullif(m.variant, '') AS variant, t.trial_id, a.number AS attempt, v.seq, v.step, s.split, s.task, s.name, v.value, t."tasks", t."backbone", t."seed", t."module_kind", t."module_share", t."module_mask", t."module_bottleneck", t."training_epochs", t."training_batch_size", t."training_gradient_accumulation", t."training_learning_rate", t."training_weight_decay", t."training_warmup_ratio", t."training_max_grad_norm", t."training_dropout", t."training_checkpoint_every", t."data_max_tokens", t."data_max_train_examples", t."data_max_validation_examples", t."data_max_test_examples", t."module_sparsity_ratio", t."training_mask_learning_rate", t."module_rank", t."module_alpha", t."module_prefix_length", t."module_prefix_hidden", t."module_combine", t."module_cross_attention", t."training_steps", t."training_warmup_steps", t."training_label_smoothing", t."training_evaluate_every", t."data_max_target_tokens", t."decoding_beams", t."decoding_length_penalty", t."decoding_early_stopping", t."decoding_min_tokens", t."decoding_max_tokens", t."decoding_no_repeat_ngrams", t."evaluation_keep_predictions", t."module_hyper_embedding", t."module_hyper_hidden", t."module_hyper_projected", t."training_compute", t.user, coalesce(f.bls_bits, t.bls_bits) AS bls_bits, coalesce(f.stored_bits, t.stored_bits) AS stored_bits, a.numerics, a.data_digests, (SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/' || a.number AS folder, (SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/' || (SELECT number FROM attempts WHERE key = t.result_attempt) || '/' || f.path AS artifact, (SELECT o.step FROM selected_values o CROSS JOIN trials q ON q.key = o.trial CROSS JOIN attempts b ON b.key = o.attempt CROSS JOIN series p ON p.key = o.series WHERE o.trial = t.key AND p.split = 'test' ORDER BY instr(',' || q.tasks || ',', ',' || p.task || ',') > 0 DESC, b.number DESC, o.seq DESC LIMIT 1) AS selected_step, (SELECT train_seconds FROM attempts WHERE key = t.result_attempt) AS train_seconds, (SELECT group_concat(tag) FROM (SELECT g.tag AS tag FROM trial_tags g WHERE g.trial = t.key UNION SELECT g.tag FROM sweep_trials p CROSS JOIN sweep_tags g ON g.sweep = p.sweep WHERE p.trial = t.key ORDER BY 1)) AS tags FROM sweeps w CROSS JOIN former_sweep_trials m ON m.sweep = w.key CROSS JOIN trials t ON t.key = m.trial LEFT JOIN artifacts f ON f.attempt = t.result_attempt CROSS JOIN attempts a ON a.trial = t.key AND a.counts_to IS NOT NULL CROSS JOIN metric_values v ON v.attempt = a.key AND v.seq <= a.counts_to CROSS JOIN series s ON s.key = v.series WHERE NOT EXISTS (SELECT 1 FROM hidden_trials h WHERE h.trial = t.key);
CREATE VIEW scores AS SELECT t.trial_id, a.number AS attempt, v.seq, v.step, s.split, s.task, s.name, v.value, t."tasks", t."backbone", t."seed", t."module_kind", t."module_share", t."module_mask", t."module_bottleneck", t."training_epochs", t."training_batch_size", t."training_gradient_accumulation", t."training_learning_rate", t."training_weight_decay", t."training_warmup_ratio", t."training_max_grad_norm", t."training_dropout", t."training_checkpoint_every", t."data_max_tokens", t."data_max_train_examples", t."data_max_validation_examples", t."data_max_test_examples", t."module_sparsity_ratio", t."training_mask_learning_rate", t."module_rank", t."module_alpha", t."module_prefix_length", t."module_prefix_hidden", t."module_combine", t."module_cross_attention", t."training_steps", t."training_warmup_steps", t."training_label_smoothing", t."training_evaluate_every", t."data_max_target_tokens", t."decoding_beams", t."decoding_length_penalty", t."decoding_early_stopping", t."decoding_min_tokens", t."decoding_max_tokens", t."decoding_no_repeat_ngrams", t."evaluation_keep_predictions", t."module_hyper_embedding", t."module_hyper_hidden", t."module_hyper_projected", t."training_compute", t.user, coalesce(f.bls_bits, t.bls_bits) AS bls_bits, coalesce(f.stored_bits, t.stored_bits) AS stored_bits, a.numerics, a.data_digests, (SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/' || a.number AS folder, (SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/' || (SELECT number FROM attempts WHERE key = t.result_attempt) || '/' || f.path AS artifact, (SELECT o.step FROM selected_values o CROSS JOIN trials q ON q.key = o.trial CROSS JOIN attempts b ON b.key = o.attempt CROSS JOIN series p ON p.key = o.series WHERE o.trial = t.key AND p.split = 'test' ORDER BY instr(',' || q.tasks || ',', ',' || p.task || ',') > 0 DESC, b.number DESC, o.seq DESC LIMIT 1) AS selected_step, (SELECT train_seconds FROM attempts WHERE key = t.result_attempt) AS train_seconds, (SELECT group_concat(tag) FROM (SELECT g.tag AS tag FROM trial_tags g WHERE g.trial = t.key UNION SELECT g.tag FROM sweep_trials p CROSS JOIN sweep_tags g ON g.sweep = p.sweep WHERE p.trial = t.key ORDER BY 1)) AS tags FROM trials t LEFT JOIN artifacts f ON f.attempt = t.result_attempt CROSS JOIN selected_values v ON v.trial = t.key CROSS JOIN attempts a ON a.key = v.attempt CROSS JOIN series s ON s.key = v.series WHERE NOT EXISTS (SELECT 1 FROM hidden_trials h WHERE h.trial = t.key) AND (instr(',' || t.tasks || ',', ',' || s.task || ',') OR s.task NOT IN (SELECT task FROM task_names));
CREATE VIEW sweep_scores AS SELECT w.name AS sweep, nullif(m.variant, '') AS variant, t.trial_id, a.number AS attempt, v.seq, v.step, s.split, s.task, s.name, v.value, t."tasks", t."backbone", t."seed", t."module_kind", t."module_share", t."module_mask", t."module_bottleneck", t."training_epochs", t."training_batch_size", t."training_gradient_accumulation", t."training_learning_rate", t."training_weight_decay", t."training_warmup_ratio", t."training_max_grad_norm", t."training_dropout", t."training_checkpoint_every", t."data_max_tokens", t."data_max_train_examples", t."data_max_validation_examples", t."data_max_test_examples", t."module_sparsity_ratio", t."training_mask_learning_rate", t."module_rank", t."module_alpha", t."module_prefix_length", t."module_prefix_hidden", t."module_combine", t."module_cross_attention", t."training_steps", t."training_warmup_steps", t."training_label_smoothing", t."training_evaluate_every", t."data_max_target_tokens", t."decoding_beams", t."decoding_length_penalty", t."decoding_early_stopping", t."decoding_min_tokens", t."decoding_max_tokens", t."decoding_no_repeat_ngrams", t."evaluation_keep_predictions", t."module_hyper_embedding", t."module_hyper_hidden", t."module_hyper_projected", t."training_compute", t.user, coalesce(f.bls_bits, t.bls_bits) AS bls_bits, coalesce(f.stored_bits, t.stored_bits) AS stored_bits, a.numerics, a.data_digests, (SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/' || a.number AS folder, (SELECT value FROM settings WHERE name = 'runs') || '/' || t.trial_id || '/' || (SELECT number FROM attempts WHERE key = t.result_attempt) || '/' || f.path AS artifact, (SELECT o.step FROM selected_values o CROSS JOIN trials q ON q.key = o.trial CROSS JOIN attempts b ON b.key = o.attempt CROSS JOIN series p ON p.key = o.series WHERE o.trial = t.key AND p.split = 'test' ORDER BY instr(',' || q.tasks || ',', ',' || p.task || ',') > 0 DESC, b.number DESC, o.seq DESC LIMIT 1) AS selected_step, (SELECT train_seconds FROM attempts WHERE key = t.result_attempt) AS train_seconds, (SELECT group_concat(tag) FROM (SELECT g.tag AS tag FROM trial_tags g WHERE g.trial = t.key UNION SELECT g.tag FROM sweep_trials p CROSS JOIN sweep_tags g ON g.sweep = p.sweep WHERE p.trial = t.key ORDER BY 1)) AS tags FROM sweeps w CROSS JOIN sweep_trials m ON m.sweep = w.key CROSS JOIN trials t ON t.key = m.trial LEFT JOIN artifacts f ON f.attempt = t.result_attempt CROSS JOIN selected_values v ON v.trial = t.key CROSS JOIN attempts a ON a.key = v.attempt CROSS JOIN series s ON s.key = v.series WHERE NOT EXISTS (SELECT 1 FROM hidden_trials h WHERE h.trial = t.key) AND (instr(',' || t.tasks || ',', ',' || s.task || ',') OR s.task NOT IN (SELECT task FROM task_names));
CREATE VIEW counted_values AS SELECT t.key AS trial, v.series, a.key AS attempt, v.seq, v.step, v.value, (a.number << 40) + v.seq AS place, s.split = 'test' AS is_test, instr(',' || t.tasks || ',', ',' || s.task || ',') > 0 AS is_own FROM trials t CROSS JOIN attempts a ON a.trial = t.key AND a.counts_to IS NOT NULL CROSS JOIN metric_values v ON v.attempt = a.key AND v.seq <= a.counts_to CROSS JOIN series s ON s.key = v.series;
CREATE VIEW attempt_provenance AS SELECT t.trial_id, a.number AS attempt, a.sweep, a.host, a.device, a.launcher, a.worker, a.worker_version, json_extract(p.text, '$.commit') AS "commit", json_extract(p.text, '$.clean') AS "clean", json_extract(p.text, '$.compiler') AS "compiler", json_extract(p.text, '$.flags') AS "flags", json_extract(p.text, '$.sweep_digest') AS "sweep_digest", json_extract(p.text, '$.overrides') AS "overrides", json_extract(q.text, '$.libtorch') AS libtorch, json_extract(q.text, '$.commit') AS worker_commit, json_extract(q.text, '$.clean') AS worker_clean, json_extract(q.text, '$.compiler') AS worker_compiler, json_extract(q.text, '$.flags') AS worker_flags, coalesce(json_extract(q.text, '$.processor'), json_extract(p.text, '$.processor')) AS processor, coalesce(json_extract(q.text, '$.kernel'), json_extract(p.text, '$.kernel')) AS kernel, coalesce(json_extract(q.text, '$.gpu'), json_extract(p.text, '$.gpu')) AS gpu, coalesce(json_extract(q.text, '$.gpu_driver'), json_extract(p.text, '$.gpu_driver')) AS gpu_driver, a.backbone_digest, a.data_digests, a.numerics, p.text AS petlab_said, q.text AS worker_said, x.text AS examples FROM trials t CROSS JOIN attempts a ON a.trial = t.key LEFT JOIN provenance v ON v.attempt = a.key LEFT JOIN provenance_texts p ON p.key = v.petlab LEFT JOIN provenance_texts q ON q.key = v.worker LEFT JOIN examples e ON e.attempt = a.key LEFT JOIN example_texts x ON x.key = e.text;
CREATE VIEW attempt_examples AS SELECT t.trial_id, a.number AS attempt, a.key IS t.result_attempt AS is_result, j.key AS task, s.key AS split, s.value AS examples FROM trials t CROSS JOIN attempts a ON a.trial = t.key CROSS JOIN examples e ON e.attempt = a.key CROSS JOIN example_texts x ON x.key = e.text CROSS JOIN json_each(x.text) j CROSS JOIN json_each(j.value) s;
COMMIT;
