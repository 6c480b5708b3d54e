package deployed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/internal/secret"
)

// secretsPlace is the prefix of secret names in Parameter Store; empty: secrets are in the environment.
type secretsPlace string

// fromSecretsManager is the prefix by which Parameter Store gives secrets of Secrets Manager.
const fromSecretsManager = "/aws/reference/secretsmanager/"

// secrets reads where secrets are.
func (e *environment) secrets(name string) secretsPlace {
	text := e.getenv(name)
	store, prefix, _ := strings.Cut(text, ":")
	switch {
	case text == "":
		return ""
	case store == "ssm" && strings.HasPrefix(prefix, "/") && strings.HasSuffix(prefix, "/"):
		return secretsPlace(prefix)
	case store == "secretsmanager" && prefix != "" && !strings.HasPrefix(prefix, "/"):
		return secretsPlace(fromSecretsManager + prefix)
	default:
		e.refuse(name, "is %q, want ssm:/PATH/, secretsmanager:PREFIX, or an empty text for the environment", text)
		return ""
	}
}

// secrets is where the tasks of an agent get their secrets from.
func (s *stack) secrets(c agentConfig) agent.Secrets {
	if c.secrets == "" {
		return secret.Environment(os.LookupEnv)
	}
	return secret.Kept(parameterStore(ssm.NewFromConfig(s.aws), c.secrets), time.Now)
}

// parameterStore returns secrets from Parameter Store, and through it from Secrets Manager.
func parameterStore(from parameterReader, at secretsPlace) agent.Secrets {
	return func(ctx context.Context, name string) (string, error) {
		full := string(at) + name
		got, err := from.GetParameter(ctx, &ssm.GetParameterInput{Name: &full, WithDecryption: aws.Bool(true)})
		if missing := new(types.ParameterNotFound); errors.As(err, &missing) {
			return "", fmt.Errorf("%w: Parameter Store has no %s", agent.ErrNoSecret, full)
		}
		if err != nil {
			return "", fmt.Errorf("read %s from Parameter Store: %w", full, err)
		}
		if got.Parameter == nil || aws.ToString(got.Parameter.Value) == "" {
			return "", fmt.Errorf("%w: %s of Parameter Store is empty", agent.ErrNoSecret, full)
		}
		return *got.Parameter.Value, nil
	}
}
