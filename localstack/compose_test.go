package localstack

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A release behind this one would not start, and an address that is not loopback would be open to the network.
func TestLocalStackIsPinnedAndListensOnLoopback(t *testing.T) {
	body, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Image string
			Ports []string
		}
	}
	if err := yaml.Unmarshal(body, &compose); err != nil {
		t.Fatal(err)
	}
	service := compose.Services["localstack"]
	if want := "localstack/localstack:4.14.0"; len(compose.Services) != 1 || service.Image != want {
		t.Errorf("got %+v, want one service, of image %s", compose.Services, want)
	}
	for _, port := range service.Ports {
		if !strings.HasPrefix(port, "127.0.0.1:") {
			t.Errorf("port %s is open to the network", port)
		}
	}
	if len(service.Ports) == 0 {
		t.Error("no port can be reached")
	}
}
