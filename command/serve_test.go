package command

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/login"
	"github.com/makegood-dev/makegood/onhttp"
)

// inProduction is a real makegood serve, in a folder with its workflow, tokens of all roles, and data.
type inProduction struct {
	t       *testing.T
	dir     string
	url     string
	process *exec.Cmd
	stderr  *bytes.Buffer
}

const paidFile = "name: paid\nsteps: [{name: pay, agent: payments}, {name: hold, agent: wait, with: {for: 1h}}]\n"

func startServe(t *testing.T, flags ...string) *inProduction {
	t.Helper()
	s := &inProduction{t: t, dir: t.TempDir(), stderr: new(bytes.Buffer)}
	must(t, os.MkdirAll(s.at("workflows"), 0o700))
	must(t, os.WriteFile(s.at("workflows", "paid.yaml"), []byte(paidFile), 0o600))
	for name, role := range map[string]string{"anna": "operator", "rob": "reader", "payments": "agent", "other": "agent"} {
		code, token, stderr := command(t, "", "serve", "token", "new", name, "--role", role, "--tokens", s.at("tokens"))
		if code != 0 {
			t.Fatal(stderr)
		}
		must(t, os.WriteFile(s.at(name), []byte(token), 0o600))
	}
	args := append([]string{"serve", "--addr", "127.0.0.1:0", "--workflows", s.at("workflows"), "--data", s.at("data"), "--tokens", s.at("tokens"), "--outside", "payments"}, flags...)
	s.process = exec.CommandContext(t.Context(), os.Args[0], args...)
	s.process.Env = append(os.Environ(), asCommand+"=1")
	s.process.Stderr = s.stderr
	stdout, err := s.process.StdoutPipe()
	must(t, err)
	must(t, s.process.Start())
	t.Cleanup(func() {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	})
	first, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%v, %s", err, s.stderr)
	}
	s.url = strings.TrimSpace(strings.TrimPrefix(first, "makegood serves "))
	return s
}

func (s *inProduction) at(path ...string) string {
	return filepath.Join(append([]string{s.dir}, path...)...)
}

// wants runs the command against the server with the token of a user.
func (s *inProduction) wants(code int, text, who string, args ...string) {
	s.t.Helper()
	wants(s.t, code, text, append(args, "--addr", s.url, "--token-file", s.at(who))...)
}

// The whole of it: an operator submits, an agent outside works with a token of its own, a reader looks and may do nothing else, and
// who asked is kept. Then SIGTERM ends it well.
func TestServeKnowsItsCallers(t *testing.T) {
	s := startServe(t)
	wants(t, codeUsage, "MAKEGOOD_TOKEN has the token", "list", "--addr", s.url)
	s.wants(codeUsage, "rob may read, and make no changes: this needs the role operator", "rob", "submit", "paid", "--id", "p-1", "--input", "{}")
	s.wants(0, "p-1", "anna", "submit", "paid", "--id", "p-1", "--input", "{}")
	work, stop := context.WithCancel(t.Context())
	defer stop()
	token, err := os.ReadFile(s.at("payments"))
	must(t, err)
	ran := make(chan error, 1)
	go func() {
		ran <- onhttp.Run(work, paying{}, onhttp.Options{URL: s.url, Token: strings.TrimSpace(string(token))})
	}()
	for s.job("p-1", "pay") != "done" {
		if t.Context().Err() != nil {
			t.Fatal("the step was never done")
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	must(t, <-ran)
	s.wants(0, "Cancelled", "anna", "cancel", "p-1", "--who", "somebody else", "--reason", "a test")
	s.wants(0, "anna", "rob", "get", "p-1")
	t.Setenv(loginVariable, strings.TrimSpace(string(must2(os.ReadFile(s.at("rob"))))))
	wants(t, 0, "p-1", "list", "--addr", s.url)
	must(t, s.process.Process.Signal(syscall.SIGTERM))
	if err := s.process.Wait(); err != nil {
		t.Errorf("got %v after SIGTERM: %s", err, s.stderr)
	}
}

func must2[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// job returns the state of a step.
func (s *inProduction) job(id, step string) string {
	s.t.Helper()
	_, stdout, stderr := ask(s.t, "get", id, "--json", "--addr", s.url, "--token-file", s.at("rob"))
	var seen struct {
		Steps []struct{ Name, State string }
	}
	if err := json.Unmarshal([]byte(stdout), &seen); err != nil {
		s.t.Fatalf("%v: %s %s", err, stdout, stderr)
	}
	for _, each := range seen.Steps {
		if each.Name == step {
			return each.State
		}
	}
	return ""
}

// paying is the agent outside.
type paying struct{}

func (paying) Name() string { return "payments" }

func (paying) Handle(context.Context, makegood.Task) (json.RawMessage, error) {
	return json.RawMessage(`{}`), nil
}

// A reader sees no buttons for verbs on the page, and the name under which they are signed in.
func TestThePageOfAReaderHasNoVerbs(t *testing.T) {
	s := startServe(t)
	for who, want := range map[string]bool{"rob": true, "anna": false} {
		text, err := os.ReadFile(s.at(who))
		must(t, err)
		form := url.Values{"token": {string(text)}}
		browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		answer, err := browser.PostForm(s.url+"/login", form)
		must(t, err)
		_ = answer.Body.Close()
		if len(answer.Cookies()) != 1 {
			t.Fatalf("%s: got %s and no cookie", who, answer.Status)
		}
		page := s.get(browser, "/", answer.Cookies()[0])
		if !strings.Contains(page, `class="readonly"`) == want || !strings.Contains(page, who) || !strings.Contains(page, "logout") {
			t.Errorf("the page of %s: got\n%s", who, page)
		}
	}
}

func (s *inProduction) get(browser *http.Client, path string, cookie *http.Cookie) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	must(s.t, err)
	r.AddCookie(cookie)
	answer, err := browser.Do(r)
	must(s.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(s.t, err)
	return string(text)
}

func TestServeIsReadyWithoutALogin(t *testing.T) {
	s := startServe(t, "--log", "json")
	for path, want := range map[string]string{"/healthz": `{"status":"ok"}`, "/readyz": `{"status":"ready"}`} {
		// The address answers before the engine runs, and /readyz says so with 503.
		for until := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
			answer, err := http.Get(s.url + path)
			must(t, err)
			text, err := io.ReadAll(answer.Body)
			must(t, errJoin(err, answer.Body.Close()))
			if answer.StatusCode == http.StatusOK && strings.TrimSpace(string(text)) == want {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("%s: got %d %s", path, answer.StatusCode, text)
			}
		}
	}
	wants(t, codeUsage, "login needed", "list", "--addr", s.url)
	must(t, s.process.Process.Signal(syscall.SIGTERM))
	_ = s.process.Wait()
	for line := range strings.Lines(s.stderr.String()) {
		if !json.Valid([]byte(line)) && !strings.HasPrefix(line, "stopping;") {
			t.Errorf("got the line %q, want JSON", line)
		}
	}
}

func errJoin(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestServeThatWouldBeOpenIsRefused(t *testing.T) {
	dir := t.TempDir()
	data := []string{"serve", "--data", filepath.Join(dir, "data")}
	tokens := filepath.Join(dir, "tokens")
	if _, err := login.NewToken(tokens, "anna", login.Operator); err != nil {
		t.Fatal(err)
	}
	for says, flags := range map[string][]string{
		"--addr 0.0.0.0:4777 can be reached from other machines": {"--addr", "0.0.0.0:4777"},
		"--addr :4777 can be reached from other machines":        {"--addr", ":4777"},
		"--addr [::]:4777 can be reached from other machines":    {"--addr", "[::]:4777"},
		"--addr shop.example:1 can be reached":                   {"--addr", "shop.example:1"},
		"--trust-proxy is missing":                               {"--trust-header", "X-User"},
		"--trust-header is missing":                              {"--trust-proxy", "127.0.0.1/32"},
		"want addresses such as":                                 {"--trust-header", "X-User", "--trust-proxy", "127.0.0.1"},
		"go together":                                            {"--tls-cert", "x"},
		"want text or json":                                      {"--log", "xml"},
		"the file of tokens":                                     {"--tokens", filepath.Join(dir, "none")},
		"--outside pay lets every process":                       {"--trust-header", "X-User", "--trust-proxy", "127.0.0.1/32", "--outside", "pay"},
		"serve token new pay --role agent":                       {"--tokens", tokens, "--outside", "pay=" + tokens},
	} {
		wants(t, codeUsage, says, append(data, flags...)...)
	}
	wants(t, codeUsage, "--data is missing", "serve")
	if _, err := os.Stat(filepath.Join(dir, "data")); !os.IsNotExist(err) {
		t.Errorf("got %v: a folder was made", err)
	}
}

// A certificate that is renewed is shown to the next who connects; one that is broken changes nothing.
func TestARenewedCertificateIsShown(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key, 1)
	s := startServe(t, "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatal(s.url)
	}
	if got := s.serial(); got != 1 {
		t.Errorf("got the certificate %d", got)
	}
	must(t, os.WriteFile(cert, []byte("half"), 0o600))
	time.Sleep(5 * quickLook)
	if got := s.serial(); got != 1 {
		t.Errorf("got the certificate %d where there is none", got)
	}
	const longer = 1 << 60 // So the files have other sizes, and their times need not differ.
	writeCertificate(t, cert, key, longer)
	for s.serial() != longer {
		if t.Context().Err() != nil {
			t.Fatal("the certificate was not read again")
		}
		time.Sleep(quickLook)
	}
}

// serial is the number of the certificate that the server shows.
func (s *inProduction) serial() int64 {
	s.t.Helper()
	c, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.url, "https://"))
	must(s.t, err)
	defer c.Close()
	return c.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func writeCertificate(t *testing.T, certFile, keyFile string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	must(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), 0o600))
	must(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
}
