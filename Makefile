# Everything here runs on a machine that has Go; `race`, and so `check`, wants a C compiler too.
# What goes run downloads, it pins in go.mod and tools/go.mod.

export CGO_ENABLED := 0

# The tools have a module of their own, and -modfile does not work in a workspace.
tool := GOWORK=off go tool -modfile=$(CURDIR)/tools/go.mod
# The modules of the workspace (go.work). The pattern "work" names their packages.
modules := . importer lab
count := go run ./lab/tidy/testcount
arches := arm64 amd64
functions := scheduler agent supervisor door

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help build functions functions-init have-sam demo repair-demo ledger-demo travel-demo money-demo quick test lab whole test-aws cost e2e browser page-soak page-million restart heap collector screenshots scale soak soak-real wide bench bench-since bench-peers bench-tables kits upgrade-test openapi release site template-check preflight deploy undeploy aws-verify aws-rehearse localstack-up localstack-test localstack-down sam-local import-survey import-reference modelcheck sim sim-map planted mutants fuzz seek due courses race check check-short vet lint format tidy generated fmt generate clean

help: ## Print this
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# With the flags that go run and go test use: others would compile every package a second time.
build: ## Build the makegood command, and the shop of the examples, into bin/
	go build -o bin/ ./cmd/makegood ./examples/shop

# Hashes are the same on every machine: no paths, no build ids, no state of the repository.
functions: ## Build the Lambda functions into .build/, for arm64 and amd64
	@for arch in $(arches); do for name in $(functions); do \
		GOWORK=off GOOS=linux GOARCH=$$arch go build -tags lambda.norpc -trimpath -buildvcs=false \
			-ldflags='-s -w -buildid=' -o .build/$$arch/$$name/bootstrap ./functions/$$name || exit 1; \
	done; done

demo: ## Run orders through a shop that fails, and kill the engine on the way
	@go run ./examples/demo

repair-demo: ## Repair ORDERS=10000 jobs with a wrong definition by two commands, settle a refund by hand, and compare the ledger
	@go run ./examples/repair -orders $(or $(ORDERS),10000) -within 60s

ledger-demo: ## Kill a process that writes a ledger KILLS=1000 times, wake attempts that were given up, and compare the ledger with the jobs
	@go run ./examples/ledger -kills $(or $(KILLS),1000)

travel-demo: ## Book BOOKINGS=300 trips through OUTAGE=30s of three services, kill the engine in the middle, and compare the ledger
	@go run ./examples/travel -bookings $(or $(BOOKINGS),300) -outage $(or $(OUTAGE),30s)

money-demo: ## Run jobs through the functions on a stand-in, and show what they have cost; needs Python and Linux
	@go run ./lab/e2e/aws -stand-in go run ./lab/e2e/money

quick: ## Run the short tests of the packages that changed since origin/main (or HEAD; BASE=COMMIT), and of IMPORTERS=10 that import them
	@packages=$$(go run ./lab/tidy/touched $(if $(BASE),-base $(BASE)) $(if $(IMPORTERS),-importers $(IMPORTERS))) || exit 1; \
	if [ -n "$$packages" ]; then $(count) -short -count=1 $$packages; else echo "quick: nothing to test" >&2; fi

test: ## Run the tests of every product package and of the importer, and count them, with a tenth of the random cases and no building of whole programs
	@$(count) -short -timeout 20m ./... ./importer/...

# The tests of lab read files of the whole tree, and the cache of go test knows only those of their own module: -count=1.
lab: ## Run the short tests of the laboratory and count them: simulation, model check, oracle, docs, tidiness, template
	@$(count) -short -count=1 -timeout 20m ./lab/...

# SHARE=2/3 of a list of packages is every third of them, from the second on; empty: all.
share = $(if $(SHARE),| awk -v share=$(SHARE) 'BEGIN { split(share, s, "/") } NR % s[2] == s[1] % s[2]')

# The packages whose tests have more to do in a whole run, and no others: make test has run the rest.
whole: ## Run whole what make test runs short: every call that can fail, whole programs, all random cases; SHARE=2/3 of the packages
	@$(count) -count=1 -timeout 20m $$(git grep -lE 'testing\.Short\(\)|seed\.(Of|Check)\(t|proof\.Hunt' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|' | \
		xargs go list -e -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' $(share))

test-aws: ## Run the tests that need AWS's API against stand-ins; of the set with MiniStack alone: ON=MiniStack (or ElasticMQ); needs Python, Java and Maven
	@go run ./lab/e2e/aws $(if $(ON),-on $(ON))

cost: ## Count what a step costs on AWS, on a stand-in, and price it; JSON=1 for JSON; COUNTS=1 for internal/sizing/counts.go; needs Python
	@go run ./lab/e2e/aws -stand-in go run ./lab/e2e/cost $(if $(JSON),-json) $(if $(COUNTS),-counts)

localstack-test := go test -tags localstack -count=1 -v -timeout 15m ./lab/e2e/localstack

e2e: ## Deploy with sam to MiniStack, and send orders through the functions there, and through agents in Python and TypeScript; drive the page in Chromium; needs Python, Node and Chromium
	@go run ./lab/e2e/aws -deploy go test -tags sam -count=1 -v -timeout 20m ./lab/e2e/sam
	@go test -tags kits -count=1 -v -timeout 15m -run 'Orders|Night' ./lab/e2e/kits
	@go run ./examples/repair -orders 500
	@SHOP=http://127.0.0.1:4798 go run ./lab/e2e/aws -deploy sh -c 'localstack/deploy.sh && $(localstack-test)'
	@$(MAKE) --no-print-directory browser

page-million: ## Time each view of the page in a file with a million jobs, which is made once, in .build/
	@go test -run NONE -bench Million -benchtime 100x -timeout 30m ./lab/pagesoak

restart: ## Time when a killed run is at work again, by the lines of its file, and an engine on a file with a million jobs
	@go test -run NONE -bench RunAgain -benchtime 7x ./lab/e2e
	@go test -run NONE -bench Restart -benchtime 5x -timeout 30m ./lab/pagesoak

heap: ## Measure the memory of an engine after 10,000, 100,000 and 1,000,000 jobs that have ended
	@go test -run NONE -bench 'Heap$$' -benchtime 1x -timeout 30m ./internal/embedded

collector: ## See the trace of a job whole in a collector for OpenTelemetry; needs Python
	@go run ./lab/e2e/aws -collector go test -tags collector -count=1 -timeout 5m -v ./lab/e2e/collector

browser: ## Drive the page in Chromium as a person would, and look it through with axe-core; needs Chromium and npm
	@go run ./lab/e2e/aws -axe go test -tags browser -count=1 -timeout 10m ./lab/e2e/browser

page-soak: ## Follow 10,000 jobs that are under way in windows and in Chromium for MINUTES=10: what is held must not grow; needs Chromium
	@go test -tags browser -count=1 -v -timeout $$(( $(or $(MINUTES),10) + 15 ))m ./lab/e2e/browser -run ThePageLasts -args -minutes $(or $(MINUTES),10) -soaked 10000

screenshots: ## Make the pictures of the page in docs/images/ anew; look at them before you commit them; needs Chromium and npm
	@go run ./lab/e2e/aws -axe go test -tags browser -count=1 ./lab/e2e/browser -run Pictures -args -pictures

scale: ## Count what is full first at 10,000 steps/s, how even the shards are, and how 1,000,000 overdue jobs are told of
	@go test -count=1 -v ./lab/scale

soak: ## Play HOURS=24 virtual hours of mixed work with faults, after those of a retention: what is held must not grow; minutes
	@go test -count=1 -v -timeout 60m -run ADayOfWork ./lab/soak -args -hours $(or $(HOURS),24)

wide: ## Do a map of ITEMS=100000 items in an engine that is killed in the middle: rate and memory; half a minute
	@go build -o .build/wide ./lab/wide && .build/wide -items $(or $(ITEMS),100000)

soak-real: ## Keep an engine at LOAD=70 percent of its capacity for MINUTES=60: its sizes, minute by minute, must be flat
	@go run ./lab/soak -minutes $(or $(MINUTES),60) -load $(or $(LOAD),70)

# What runs a suite of lab/bench, so many rounds; benchstat is sure of nothing below six.
measured = $(if $(and $(KEEP),$(ONLY)),$(error KEEP keeps the figures of a whole suite: run it without ONLY))go run ./lab/bench -rounds $(or $(ROUNDS),$(1)) $(if $(ONLY),-only '$(ONLY)')

bench: ## Measure the engine, and compare with the figures that are kept: W1 to W8 of docs/performance.md; ROUNDS=6, ONLY=ManyJobs, KEEP=1 keeps them
	@$(call measured,6) works
	@! test -e lab/bench/figures/works.txt || $(tool) benchstat -table goos,goarch,cpu -ignore pkg,commit,date,go,machine,flush,busy kept=lab/bench/figures/works.txt now=.build/bench/works.txt
	@$(if $(KEEP),go run ./lab/bench keep works)

bench-since: ## Measure the engine beside that of commit 0980d3c, in turns; ROUNDS, ONLY, KEEP; needs the history
	@$(call measured,5) since
	@$(if $(KEEP),go run ./lab/bench keep since)

bench-peers: ## Measure the engine beside Restate, DBOS and River, in turns; ROUNDS, ONLY, KEEP; needs npm, and strace to count flushes
	@$(call measured,5) peers
	@$(if $(KEEP),go run ./lab/bench keep peers)

bench-tables: ## Write the tables of README.md and docs/performance.md anew, from the figures that are kept
	@go run ./lab/bench tables

kits: ## Hold the kits for agents in other languages to the same behaviour; needs Python, Node and npm
	@go test -tags kits -count=1 -timeout 15m ./lab/e2e/kits

# MiniStack takes most of the time. UPGRADE is how many jobs each deployment has under way.
upgrade-test: ## Let two releases work on one table and on one folder, rolled forwards and back; needs Python and the history
	@UPGRADE=$(or $(UPGRADE),2000) go test -count=1 -v -run 'TakeTurns' ./lab/e2e
	@UPGRADE=$(or $(UPGRADE),2000) go run ./lab/e2e/aws -stand-in go test -tags aws -count=1 -v -timeout 90m -run Rolls ./lab/e2e/lambda

openapi: ## Write the OpenAPI document of the HTTP API, dist/openapi.json
	@mkdir -p dist && go test ./internal/httpapi -count=1 -run WrittenDown -args -dist $(CURDIR)/dist/openapi.json

release: ## Make the archives, checksums and bills of materials of the commit that is checked out, in dist/; TARGETS=linux/arm64
	@go run ./lab/release $(if $(TARGETS),-targets $(TARGETS))

localstack := docker compose --file localstack/compose.yaml

localstack-up: ## Start LocalStack 4.14.0 in Docker, and deploy the stack to it; needs Docker and Python
	@docker compose version >/dev/null 2>&1 || { echo "localstack-up: NOT RUN: it needs Docker with compose (docs/localstack.md)" >&2; exit 1; }
	@$(localstack) up --detach --wait
	@AWS_ENDPOINT_URL=http://127.0.0.1:4566 SHOP=http://host.docker.internal:4790 localstack/deploy.sh

localstack-test: ## Run the tests of lab/e2e/localstack on what answers at AWS_ENDPOINT_URL, LocalStack by default
	@AWS_ENDPOINT_URL=$${AWS_ENDPOINT_URL:-http://127.0.0.1:4566} $(localstack-test)

localstack-down: ## Stop LocalStack
	@$(localstack) down --volumes

sam-local: ## Run each function on the saved events of events/ by sam local invoke; needs Docker and Python
	@docker version >/dev/null 2>&1 || { echo "sam-local: NOT RUN: it needs Docker, and none answers here (docs/localstack.md)" >&2; exit 1; }
	@go run ./lab/e2e/aws -deploy go run ./lab/e2e/events -sam-local

site: ## Make a site of docs/ in .build/site; a link or an anchor that leads nowhere fails; needs Python
	@go run ./lab/e2e/aws -run mkdocs build --strict --clean --config-file tools/site/mkdocs.yml
	@echo "site: python3 -m http.server -b 127.0.0.1 -d .build/site 4780   (its search needs a server)"

template-check: ## Check template.yaml: cfn-lint, and our own rules; needs Python
	@go run ./lab/e2e/aws -run cfn-lint template.yaml
	@SAM_TRANSLATE=1 go test ./lab/e2e/template

ENV ?= dev
STACK ?= makegood-$(ENV)
sam := $(shell command -v sam)
# The same bytes as make functions builds, and half the size of what sam build makes by itself.
goflags := -tags=lambda.norpc -trimpath -buildvcs=false '-ldflags=-s -w -buildid='

preflight: ## Say what the account lacks for STACK, and change nothing; ENV and PARAMETERS as for deploy
	@go run ./lab/e2e/preflight -stack $(STACK) -env $(ENV) $(PARAMETERS)

deploy: have-sam preflight ## Build and deploy STACK to AWS, after asking; ENV=dev or prod, PARAMETERS="Name=Value ...", TAGS
	@echo "deploy: builds the functions, shows what would change in stack $(STACK) ($(ENV), samconfig.toml) of the account"
	@echo "deploy: that your credentials are for, and asks before it changes anything. docs/deploy.md says what it costs."
	GOWORK=off GOFLAGS="$(goflags)" sam build --config-env $(ENV) $(if $(PARAMETERS),--parameter-overrides $(PARAMETERS))
	sam deploy --config-env $(ENV) --stack-name $(STACK) $(if $(PARAMETERS),--parameter-overrides $(PARAMETERS)) $(if $(TAGS),--tags $(TAGS))

undeploy: have-sam ## Delete STACK from AWS, after asking; its table and key stay
	sam delete --config-env $(ENV) --stack-name $(STACK)
	@echo "undeploy: the table with its jobs and the key stay. docs/deploy.md says how to delete them, too."

aws-verify: have-sam ## Deploy to your account under its own name, verify there, tear down; asks first
	@go run ./lab/e2e/verify $(if $(ACCOUNT),-account $(ACCOUNT))

aws-rehearse: ## Go through make aws-verify against MiniStack; needs Python
	@go run ./lab/e2e/aws -deploy go run ./lab/e2e/verify -rehearse -account 000000000000 -report .build/aws-rehearse.md

functions-init: ## Print how large each function is, and what its start takes here, also under AWS's runtime interface emulator; needs Linux and Python
	@$(MAKE) --no-print-directory functions arches=$$(go env GOARCH)
	@go run ./lab/e2e/aws -rie go run ./lab/e2e/inits

have-sam:
	@test -n "$(sam)" || { echo "there is no sam here: pip install aws-sam-cli==1.170.0 (docs/deploy.md)" >&2; exit 1; }

import-survey: ## Try makegood-import on definitions of others, and write docs/import-table.md; needs npm and pip
	@mkdir -p .build && go run ./importer/internal/asl/survey -dir .build/definitions > .build/import-table.md && mv .build/import-table.md docs/import-table.md

import-reference: ## Write down what the machines of the importer do in moto's interpreter; needs Python
	@test -x .build/moto/bin/python || { python3 -m venv .build/moto && .build/moto/bin/pip install --quiet "moto[stepfunctions]==5.2.5" jsonata-python==0.6.0; }
	@AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test .build/moto/bin/python importer/internal/asl/reference.py importer/internal/asl/testdata/machines

modelcheck: ## Check every state of small jobs, and that planted bugs are found; takes minutes
	@MODELCHECK=1 go test ./lab/modelcheck -count=1 -timeout 150m -v -run 'Models|ThePage|Planted'

# The simulation needs virtual time, which only a test has; so its test is built and run as a command.
sim: ## Simulate jobs under faults: SEEDS=10000, or SEED=42 TRACE=1; the last line is JSON
	@go test -c -o .build/sim.test ./lab/sim && .build/sim.test -test.run '^TestSimulate$$' -test.timeout 0 \
		$(if $(SEED),-test.v -seed $(SEED) $(if $(TRACE),-trace),-seeds $(or $(SEEDS),10000) -from $(or $(FROM),1))

sim-map: ## Simulate one map of ITEMS=100000 items under faults, with redrives; SEED for other faults; minutes of one core
	@MAPITEMS=$(or $(ITEMS),100000) go test ./lab/sim -count=1 -v -timeout 2h -run ALargeMapEnds -args $(if $(SEED),-seed $(SEED))

fuzz: ## Feed both handlers FUZZ=1000000 spoilt messages each (SEED=1); or TIME=30s for each decoder instead
ifdef TIME
	@grep -rl '^func Fuzz' --include='*_test.go' --exclude-dir=testdata --exclude-dir=tidy . | while read file; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z]*\).*/\1/p' $$file); do \
			echo "$$file $$target"; go test $$(dirname $$file) -run '^$$' -fuzz "^$$target$$" -fuzztime $(TIME) || exit 1; \
		done; \
	done
else
	@go run ./lab/fuzz -messages $(or $(FUZZ),1000000) -seed $(or $(SEED),1)
endif

# The tests that draw, each with a seed that nobody has played; what fails prints its own (decision 0035).
seek: ## Play the random tests with fresh seeds, TIMES=1; RAPID=1000 jobs each of the core's
	@MAKEGOOD_SEED=$(or $(SEED),random) go test -count=$(or $(TIMES),1) -timeout 60m $$(grep -rlE 'seed\.(Of|Check)\(t' --include='*_test.go' agent internal importer lab | xargs -n1 dirname | sort -u | grep -v testkit/seed | sed 's|^|./|')
	@MAKEGOOD_SEED=$(or $(SEED),random) go test -count=$(or $(TIMES),1) -timeout 60m ./internal/machine ./lab/oracle -run 'Random|Fenced|Kept|TheDocsSay' -rapid.checks=$(or $(RAPID),1000)

planted: ## Plant bugs in the shipped code, and see that the random world, oracle, simulation and model check find them; takes minutes
	@PLANTED=$(or $(PLANTED),1) go test ./internal/machine ./internal/gate -count=1 -timeout 30m -v -run Planted
	@PLANTED=$(or $(PLANTED),1) go test ./lab/oracle -count=1 -timeout 30m -v -run Planted
	@PLANTED=$(or $(PLANTED),1) go test ./lab/sim -count=1 -timeout 30m -v -run Planted
	@MODELCHECK=1 go test ./lab/modelcheck -count=1 -timeout 150m -v -run Planted

mutants: ## Make SAMPLE=200 wrong versions of the code that decides (SEED=1, PACKAGE, ONLY, EVERY=1, JSON=1), and see what finds them
	@go run ./lab/mutants -sample $(or $(SAMPLE),200) -seed $(or $(SEED),1) $(if $(PACKAGE),-packages $(PACKAGE)) \
		$(if $(ONLY),-only '$(ONLY)') $(if $(EVERY),-every) $(if $(JSON),-json)

courses: ## A million courses of events at the gate of an agent, COURSES=1000000; half an hour
	@COURSES=$(or $(COURSES),1000000) go test ./internal/gate -count=1 -timeout 3h -run ManyCourses -v

# Told apart from a failing race: without a compiler nothing was looked for. In CI that is no pass.
due: ## 100,000 due jobs in virtual time, and 20,000 real ones at one time; minutes
	DUE=100000 go test ./internal/embedded ./internal/supervisor -count=1 -timeout 60m -run ManyDue -v
	DUE=20000 go test ./internal/embedded -count=1 -timeout 20m -run RealDue -v

# docs and tidy read files, run programs that are not built for it, and engines as the tests of engines do: five minutes.
# The core, what checks it beside the real parts, and what reads the template have one goroutine: five minutes.
# Two tests that strike each call of a job play the same goroutines some 2,000 times: ten minutes. Those with deaths by chance play them, too.
race: export CGO_ENABLED := 1
race: ## Run the tests under the race detector, but those of what is written, or has one goroutine; SHARE=1/2 of the packages; needs a C compiler
	@cc=$$(go env CC); \
	if command -v "$${cc%% *}" >/dev/null; then \
		$(count) -race -short -timeout 30m -skip 'WhicheverCallFailsOrIsTheLast$$|WhicheverTwoCallsFailOrAreTheLast$$' $$(go list work | grep -vE '/(internal/machine|lab/(docs|tidy|oracle|modelcheck|fuzz|e2e/template))$$' $(share)); \
	else \
		echo "race: NOT RUN: the race detector needs a C compiler, and there is no $$cc here (apt-get install gcc)" >&2; \
		test -z "$$CI"; \
	fi

# WHOLE and RACE are the shares of these two: .ci/run, which has 40 minutes for all, plays those of the day.
check: check-short ## All that must hold before a commit; WHOLE=2/3 RACE=1/2 of whole and race
	@$(MAKE) --no-print-directory whole SHARE=$(WHOLE)
	@$(MAKE) --no-print-directory race SHARE=$(RACE)

check-short: vet lint format tidy generated test lab ## What of check comes before whole and race

vet:
	go vet work
	go vet -tags aws,sam,localstack,kits,browser,collector work

lint:
	@for module in $(modules); do (cd $$module && $(tool) staticcheck ./...) || exit 1; done

format:
	@if ! wrong=$$($(tool) gofumpt -d .) || [ -n "$$wrong" ]; then \
		echo "$$wrong"; echo "format: run make fmt" >&2; exit 1; \
	fi

tidy:
	@for module in $(modules) tools; do (cd $$module && GOWORK=off go mod tidy -diff) || exit 1; done

# Compares the tree with itself, so that work in progress is no obstacle.
generated:
	@before=$$(git diff | git hash-object --stdin; git status --porcelain) || exit 1; \
	go generate work || exit 1; \
	after=$$(git diff | git hash-object --stdin; git status --porcelain); \
	if [ "$$before" != "$$after" ]; then \
		git --no-pager diff --stat; \
		echo "generated: go generate changed files; look at the difference and commit it" >&2; exit 1; \
	fi

fmt: ## Format all Go files
	$(tool) gofumpt -w .

generate: ## Write all generated files anew
	go generate work

clean: ## Remove what the targets here have built
	rm -rf bin dist .build
