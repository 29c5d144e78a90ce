# Sourced by the pairs' train.sh: the paper's training on the devices that there are.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
USAGE="usage: train.sh base|big [--dry-run]"
(($# == 1 || $# == 2)) || fail "$USAGE"
choose_size "$1"
[[ ${2:---dry-run} == --dry-run ]] || fail "$USAGE"
DRY_RUN=${2:-}
CHOSEN=${ARCH:-}${MAX_UPDATE:-}
ARCH=${ARCH:-$PAPER_ARCH}
MAX_UPDATE=${MAX_UPDATE:-$PAPER_UPDATES}
SEED=${SEED:-1}
UPDATE_TOKENS=${UPDATE_TOKENS:-25000}
MAX_TOKENS=${MAX_TOKENS:-}
PRECISION=${PRECISION:-}
require_numbers 1 MAX_UPDATE UPDATE_TOKENS
require_numbers 0 SEED
[ -z "$MAX_TOKENS" ] || require_numbers 1 MAX_TOKENS
# A shorter run keeps as many checkpoints, closer to each other.
((MAX_UPDATE >= AVERAGED)) || AVERAGED=$MAX_UPDATE
((MAX_UPDATE >= SAVE_EVERY * AVERAGED)) || SAVE_EVERY=$((MAX_UPDATE / AVERAGED))
LOG_EVERY=$((MAX_UPDATE >= 1000 ? 100 : (MAX_UPDATE + 9) / 10))

# Several machines: one start of this script on each (SLURM's srun, or NNODES, NODE_RANK and MASTER_ADDR by hand), or
# one for each device by torchrun, which sets WORLD_SIZE and RANK.
if [ -z "${NNODES:-}" ] && ((${SLURM_STEP_NUM_NODES:-1} > 1)); then
  SLURM_STEP_NUM_TASKS=${SLURM_STEP_NUM_TASKS:-$SLURM_STEP_NUM_NODES}
  ((SLURM_STEP_NUM_TASKS == SLURM_STEP_NUM_NODES)) ||
    fail "SLURM has started $SLURM_STEP_NUM_TASKS tasks on $SLURM_STEP_NUM_NODES nodes: start one on each, with srun --ntasks-per-node 1"
  NNODES=$SLURM_STEP_NUM_NODES NODE_RANK=$SLURM_NODEID
  MASTER_ADDR=${MASTER_ADDR:-$(scontrol show hostnames "$SLURM_STEP_NODELIST" | head -n 1)}
fi
NNODES=${NNODES:-1} NODE_RANK=${NODE_RANK:-0} MASTER_PORT=${MASTER_PORT:-29500}
require_numbers 1 NNODES MASTER_PORT
require_numbers 0 NODE_RANK
((NNODES == 1)) || [ -n "${MASTER_ADDR:-}" ] || fail "NNODES=$NNODES needs MASTER_ADDR, the name of the machine with NODE_RANK=0"
STARTED=
if [ -n "${WORLD_SIZE:-}" ] && [ -n "${RANK:-}" ]; then STARTED=$WORLD_SIZE NODE_RANK=$RANK; fi
FOLLOWS=
if ((NODE_RANK > 0)) || [ -n "$DRY_RUN" ]; then FOLLOWS=yes; fi
begin
# torchrun shows what all workers of a machine print: the first one's is enough.
if [ -n "$STARTED" ] && ((NODE_RANK > 0)); then exec >"$WORK/logs/train-$SIZE-$NODE_RANK.log" 2>&1; fi
after binarise prepare.sh
mkdir -p "$RUN"

# The devices, and the sizes of the batches that make up an update on them; says what it found.
RECORD=()
[ -n "$FOLLOWS" ] || RECORD=(--record "$RUN/plan.json.tmp")
PLAN=$(python "$SHARED/plan.py" "$BINARY" --languages "$SOURCE_LANG" "$TARGET_LANG" --nodes "$NNODES" \
  --started "${STARTED:-0}" --update-tokens "$UPDATE_TOKENS" --most-tokens "${MAX_TOKENS:-0}" \
  --precision "${PRECISION:-auto}" "${RECORD[@]}") || fail "no training without a plan of its batches"
{ read -r LOCAL_DEVICES && read -r GPUS && mapfile -t BATCHES; } <<<"$PLAN"
if ((GPUS == 0)) && [ -z "$CHOSEN" ] && [ -z "$DRY_RUN" ]; then
  fail "there is no GPU here, and $MAX_UPDATE updates of $ARCH would take a CPU weeks: go where there is one, or try it with ARCH=vaswani_tiny MAX_UPDATE=20"
fi

COMMAND=(fairseq-train)
if [ -z "$STARTED" ] && ((NNODES > 1)); then
  COMMAND=(torchrun --nnodes "$NNODES" --node_rank "$NODE_RANK" --nproc_per_node "$LOCAL_DEVICES"
    --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" "$(command -v fairseq-train)")
fi
COMMAND+=("$BINARY" --user-dir "$ROOT/vaswani_plugin" --task vaswani_translation
  --source-lang "$SOURCE_LANG" --target-lang "$TARGET_LANG" --arch "$ARCH"
  --criterion vaswani_label_smoothing --label-smoothing 0.1
  --lr-scheduler vaswani_inverse_sqrt --warmup-updates 4000
  --optimizer adam --adam-betas '(0.9,0.98)' --adam-eps 1e-9 --clip-norm 0 --weight-decay 0
  --max-update "$MAX_UPDATE" --seed "$SEED" "${BATCHES[@]}"
  --save-dir "$CHECKPOINTS" --save-interval-updates "$SAVE_EVERY" --keep-interval-updates "$AVERAGED" --no-epoch-checkpoints
  --tensorboard-logdir "$RUN/tensorboard" --log-format json --log-interval "$LOG_EVERY")
[ -z "${WANDB_PROJECT:-}" ] || COMMAND+=(--wandb-project "$WANDB_PROJECT")
if [ -n "$DRY_RUN" ]; then
  printf '%q ' "${COMMAND[@]}"
  echo
  exit
fi

# train SETTINGS MAX_UPDATE
train() {
  settle_checkpoints "$1" "$2"
  printf '%s\n' "$AVERAGED" >"$RUN/averaged"
  mv "$RUN/plan.json.tmp" "$RUN/plan.json"
  [ -e "$CHECKPOINTS/checkpoint_last.pt" ] || rm -rf "$RUN/train.log" "$RUN/tensorboard"
  "${COMMAND[@]}" 2>&1 | deaf tee -a "$LOG" "$RUN/train.log" | deaf python "$EXAMPLES/training_progress.py" "$2"
}

SETTINGS=$(printf '%s\n' "$CHAIN" "$ARCH" "$SEED" "$UPDATE_TOKENS" | digest)
if ((NODE_RANK > 0)); then
  # The first worker keeps the books; what it skips must not be waited for.
  if is_done "train-$SIZE" train "$SETTINGS" "$MAX_UPDATE"; then exit; fi
  exec "${COMMAND[@]}" >>"$WORK/logs/train-$SIZE-$NODE_RANK.log" 2>&1
fi
step "train-$SIZE" train "$SETTINGS" "$MAX_UPDATE"
printf '%s\n' "$SIZE" >"$WORK/last_trained"
say "ready for evaluate.sh $SIZE: $CHECKPOINTS"
