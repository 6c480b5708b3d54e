package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/testkit/standin"
	"github.com/makegood-dev/makegood/lab/testkit/docker"
)

// endpointVariable leads the AWS SDK to a stand-in. The template does not have it.
const endpointVariable = "AWS_ENDPOINT_URL"

// samLocal runs all cases by sam local invoke, from the root of the repository.
func samLocal(ctx context.Context, getenv func(string) string, out io.Writer) error {
	endpoint := getenv(endpointVariable)
	if endpoint == "" {
		return errors.New(endpointVariable + " must say where a stand-in for AWS is: run this with make sam-local")
	}
	d, err := docker.Find(ctx)
	if err != nil {
		return err
	}
	image, err := d.Image(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, %s, AWS at %s is %s\n", d, image, endpoint, getenv(standin.DeployedVariable))
	shop, err := services.Start("127.0.0.1:0", services.Options{})
	if err != nil {
		return err
	}
	defer shop.Close()
	seen := map[string]string{}
	for _, url := range []string{endpoint, shop.URL()} {
		bridged, stop, err := d.Bridge(ctx, url, "0")
		if err != nil {
			return err
		}
		defer stop()
		seen[url] = bridged
	}
	b, err := buildLocal(ctx, image)
	if err != nil {
		return err
	}
	defer b.remove()
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("AWS configuration: %w", err)
	}
	w := &world{
		db: dynamodb.NewFromConfig(c), mq: sqs.NewFromConfig(c), prefix: fmt.Sprintf("sam-local-%08x-", rand.Uint32()), shop: seen[shop.URL()],
		variables: map[string]string{
			endpointVariable: seen[endpoint], "MAKEGOOD_SHOP": seen[shop.URL()], "MAKEGOOD_HTTP_ALLOW": d.Host, "MAKEGOOD_STACK": stackName,
		},
	}
	return runCases(ctx, "events", w, b.invoke, out)
}

// built is the stack as sam built it, in a folder of its own.
type built struct {
	folder string
	image  docker.Image
}

// buildLocal builds the template's functions for this machine. sam hands a function only variables that the
// template has, so that the endpoint is added to a copy of it.
func buildLocal(ctx context.Context, i docker.Image) (b built, err error) {
	if b.folder, err = os.MkdirTemp("", "makegood-sam-local"); err != nil {
		return b, err
	}
	defer func() {
		if err != nil {
			b.remove()
		}
	}()
	b.image = i
	template, err := os.ReadFile("template.yaml")
	if err != nil {
		return b, err
	}
	copied, err := withEndpoint(template)
	if err != nil {
		return b, err
	}
	source := filepath.Join(b.folder, "source.yaml")
	if err := os.WriteFile(source, copied, 0o600); err != nil {
		return b, err
	}
	_, err = sam(ctx, "build", "--template", source, "--base-dir", ".", "--build-dir", filepath.Join(b.folder, "built"),
		"--parameter-overrides", "Architecture="+docker.Architecture())
	return b, err
}

// remove takes the folder away. Nobody needs it any more.
func (b built) remove() { _ = os.RemoveAll(b.folder) }

// withEndpoint adds the endpoint's variable, empty, to those that all functions of the template have.
func withEndpoint(template []byte) ([]byte, error) {
	const last = "        MAKEGOOD_LOG_LEVEL: !Ref LogLevel\n"
	if bytes.Count(template, []byte(last)) != 1 {
		return nil, fmt.Errorf("template.yaml must have one line %q, behind which the endpoint's variable is put", last)
	}
	return bytes.Replace(template, []byte(last), []byte(last+"        "+endpointVariable+`: ""`+"\n"), 1), nil
}

// invoke runs a function once, in a container. It is the invoker of sam local.
func (b built) invoke(ctx context.Context, function string, event []byte, variables map[string]string) (string, error) {
	values, err := json.Marshal(map[string]any{"Parameters": variables})
	if err != nil {
		return "", err
	}
	eventFile, variablesFile := filepath.Join(b.folder, "event.json"), filepath.Join(b.folder, "variables.json")
	for name, body := range map[string][]byte{eventFile: event, variablesFile: values} {
		if err := os.WriteFile(name, body, 0o600); err != nil {
			return "", err
		}
	}
	return sam(ctx, "local", "invoke", function, "--template", filepath.Join(b.folder, "built", "template.yaml"), "--event", eventFile,
		"--env-vars", variablesFile, "--invoke-image", b.image.Name, "--skip-pull-image", "--parameter-overrides", "Architecture="+docker.Architecture())
}

// sam runs the SAM CLI, and returns its standard output: what a function answered, when it ran one.
func sam(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "sam", append(arguments, "--language-extensions")...)
	var out, log bytes.Buffer
	command.Stdout, command.Stderr = &out, &log
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("sam %s: %w\n%s%s", strings.Join(arguments, " "), err, log.String(), out.String())
	}
	return strings.TrimSpace(out.String()), nil
}
