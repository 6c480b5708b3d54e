#!/bin/sh
# Builds template.yaml, its loops written out, and deploys it as the stack makegood-local to what answers at
# AWS_ENDPOINT_URL: LocalStack, MiniStack or another stand-in. SHOP is where the functions will find the services of the sample order; the tests
# of this folder serve them there.
set -eu

: "${AWS_ENDPOINT_URL:?must say where a stand-in for AWS answers; without it this would go to your account}"
SHOP="${SHOP:-http://127.0.0.1:4790}"
export AWS_ACCESS_KEY_ID="${AWS_ACCESS_KEY_ID:-test}" AWS_SECRET_ACCESS_KEY="${AWS_SECRET_ACCESS_KEY:-test}"
export AWS_REGION="${AWS_REGION:-eu-west-1}" SAM_CLI_TELEMETRY=0
export AWS_DEFAULT_REGION="$AWS_REGION"
cd "$(dirname "$0")/.."

# The one in PATH, or else the pinned one.
if ! command -v sam >/dev/null; then
	sam() { go run ./lab/e2e/aws -run sam "$@"; }
fi

case "$(uname -m)" in
aarch64 | arm64) architecture=arm64 ;;
*) architecture=x86_64 ;;
esac
host="${SHOP#*://}"

set -- "Architecture=$architecture" DeletionProtection=no Shards=4 LogRetentionDays=7 Alarms=no Dashboard=no \
	"Shop=$SHOP" "HttpAllow=${host%%:*}"
# Says what it does only if it fails: it is long.
quietly() {
	"$@" >.build/localstack.log 2>&1 || {
		cat .build/localstack.log >&2
		exit 1
	}
}

mkdir -p .build
go run ./localstack/unroll <template.yaml >.build/unrolled.yaml
quietly sam build --template .build/unrolled.yaml --base-dir . --config-file "$PWD/samconfig.toml" --build-dir .build/localstack --parameter-overrides "$@"
quietly sam deploy --template .build/localstack/template.yaml --config-file "$PWD/samconfig.toml" --stack-name makegood-local \
	--resolve-s3 --no-confirm-changeset --no-fail-on-empty-changeset --no-progressbar \
	--capabilities CAPABILITY_IAM CAPABILITY_AUTO_EXPAND --region "$AWS_REGION" --parameter-overrides "$@"
echo "deployed as makegood-local to $AWS_ENDPOINT_URL, for a shop at $SHOP"
