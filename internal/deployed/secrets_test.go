package deployed

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/makegood-dev/makegood/agent"
)

func TestWhereSecretsAre(t *testing.T) {
	for said, want := range map[string]secretsPlace{
		"":                                "",
		"ssm:/makegood/s/http/":           "/makegood/s/http/",
		"secretsmanager:makegood/s/http/": "/aws/reference/secretsmanager/makegood/s/http/",
		"ssm:makegood/":                   "refused",
		"ssm:/makegood":                   "refused",
		"secretsmanager:":                 "refused",
		"secretsmanager:/x/":              "refused",
		"vault:/x/":                       "refused",
		"/makegood/":                      "refused",
	} {
		e := &environment{getenv: func(string) string { return said }}
		got := e.secrets(VarSecrets)
		if e.err() != nil {
			got = "refused"
		}
		if got != want {
			t.Errorf("%q: got %q, %v, want %q", said, got, e.err(), want)
		}
	}
}

// secretParameters answers as SSM does.
type secretParameters map[string]string

func (p secretParameters) GetParameter(_ context.Context, in *ssm.GetParameterInput, _ ...func(*ssm.Options)) (*ssm.GetParameterOutput, error) {
	name := aws.ToString(in.Name)
	value, there := p[name]
	switch {
	case !aws.ToBool(in.WithDecryption):
		return nil, errors.New("asked for what is encrypted")
	case name == "/m/throttled":
		return nil, errors.New("ThrottlingException")
	case !there:
		return nil, &types.ParameterNotFound{}
	}
	return &ssm.GetParameterOutput{Parameter: &types.Parameter{Value: &value}}, nil
}

func TestASecretIsAParameter(t *testing.T) {
	from := parameterStore(secretParameters{"/m/key": "k-1", "/m/empty": ""}, "/m/")
	for _, c := range []struct {
		name, want string
		missing    bool
	}{{"key", "k-1", false}, {"empty", "", true}, {"other", "", true}, {"throttled", "", false}} {
		got, err := from(t.Context(), c.name)
		if got != c.want || errors.Is(err, agent.ErrNoSecret) != c.missing || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q, %v", c.name, got, err)
		}
	}
}
