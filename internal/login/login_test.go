package login_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/internal/httpapi"
	"github.com/makegood-dev/makegood/internal/login"
)

// guarded is a server behind a login, with a token of each role. What gets through answers "in" and who it is.
type guarded struct {
	*httptest.Server
	t                       *testing.T
	file                    string
	operator, reader, agent string
}

func newGuarded(t *testing.T, change func(*login.Config)) *guarded {
	t.Helper()
	g := &guarded{t: t, file: filepath.Join(t.TempDir(), "tokens")}
	g.operator, g.reader, g.agent = g.token("anna", login.Operator), g.token("rob", login.Reader), g.token("payments", login.Agent)
	tokens, err := login.OpenTokens(g.file)
	if err != nil {
		t.Fatal(err)
	}
	config := login.Config{
		Tokens: tokens, Host: "127.0.0.1",
		Open:   append(httpapi.HealthPatterns(), httpapi.Patterns(httpapi.Complete)...),
		Agents: httpapi.Patterns(httpapi.Agents),
	}
	if change != nil {
		change(&config)
	}
	g.Server = httptest.NewServer(login.New(config, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, _ := login.CallerOf(r.Context())
		fmt.Fprintf(w, "in %s %s", caller.Name, caller.Role)
	})))
	t.Cleanup(g.Close)
	g.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return g
}

func (g *guarded) token(name string, role login.Role) string {
	g.t.Helper()
	token, err := login.NewToken(g.file, name, role)
	if err != nil {
		g.t.Fatal(err)
	}
	return token
}

// ask asks with these headers, "Name: value" each, and returns the status and the body.
func (g *guarded) ask(method, path, body string, headers ...string) (int, string, http.Header) {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), method, g.URL+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	answer, err := g.Client().Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return answer.StatusCode, string(text), answer.Header
}

func bearer(token string) string { return "Authorization: Bearer " + token }

// Every route of the API is asked without a token, and with that of each role.
func TestEachRoleIsLetInWhereItMayBe(t *testing.T) {
	g := newGuarded(t, nil)
	fill := strings.NewReplacer("{agent}", "payments", "{token}", "x", "{id}", "o-1", "{sha256}", "x", "{hash}", "x", "{step}", "s")
	for door, want := range map[httpapi.Door]string{ // of nobody, a reader, an operator, the agent
		httpapi.Read: "401 200 200 403", httpapi.Submit: "401 403 200 403", httpapi.Operate: "401 403 200 403",
		httpapi.Complete: "200 200 200 200", httpapi.Agents: "401 403 403 200",
	} {
		patterns := httpapi.Patterns(door)
		if len(patterns) == 0 {
			t.Fatalf("door %s has no route", door)
		}
		for _, pattern := range patterns {
			method, path, _ := strings.Cut(fill.Replace(pattern), " ")
			if path == "/healthz" {
				continue
			}
			var got []string
			for _, headers := range [][]string{nil, {bearer(g.reader)}, {bearer(g.operator)}, {bearer(g.agent)}} {
				status, _, _ := g.ask(method, path, "", headers...)
				got = append(got, fmt.Sprint(status))
			}
			if got := strings.Join(got, " "); got != want {
				t.Errorf("%s: got %s of nobody, a reader, an operator and the agent, want %s", pattern, got, want)
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, body, _ := g.ask("GET", path, ""); status != 200 || !strings.HasPrefix(body, "in") {
			t.Errorf("%s: got %d %s, want it open", path, status, body)
		}
	}
}

func TestAReaderIsToldWhyNothingMayBeChanged(t *testing.T) {
	g := newGuarded(t, nil)
	status, body, _ := g.ask("POST", "/api/jobs", "{}", bearer(g.reader))
	if status != 403 || !strings.Contains(body, `"error":"rob may read, and make no changes: this needs the role operator"`) {
		t.Errorf("got %d %s", status, body)
	}
	if status, body, _ := g.ask("GET", "/api/jobs", ""); status != 401 || !strings.Contains(body, "MAKEGOOD_TOKEN") {
		t.Errorf("without a token: got %d %s, want to hear what to do", status, body)
	}
}

func TestAnAgentSpeaksForItselfAlone(t *testing.T) {
	g := newGuarded(t, nil)
	if status, body, _ := g.ask("POST", "/api/agents/shipping/tasks", "{}", bearer(g.agent)); status != 403 || !strings.Contains(body, "payments") {
		t.Errorf("got %d %s of another agent's tasks", status, body)
	}
}

// A path that two would read apart must not open what is closed. Each is sent as it stands, as no client would.
func TestNoPathLeadsAround(t *testing.T) {
	g := newGuarded(t, nil)
	for _, path := range []string{
		"/complete/../api/jobs", "/complete/..%2fapi/jobs/x", "/complete/x/../../api/jobs", "//api/jobs", "/./api/jobs", "/api//jobs",
		"/healthz/../api/jobs", "/healthz/", "/healthz/x", "/HEALTHZ", "/api/completions/../jobs", "/api/completions/complete/", "/api/agents/payments/../../jobs",
		"/login/../api/jobs", "/login/", "/complete/", "/api/jobs?x=/healthz", "/%61pi/jobs", "/api/jobs;/healthz", "/api/jobs%00/healthz", "http://localhost/api/jobs", "*",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "CONNECT", "HEAD", "OPTIONS"} {
			status, body := g.raw(method, path)
			if status < 300 && strings.Contains(body, "in ") {
				t.Errorf("%s %s: got %d %s, want that nobody is let in", method, path, status, body)
			}
		}
	}
}

// raw sends a request line as it is.
func (g *guarded) raw(method, target string) (int, string) {
	g.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(g.URL, "http://"))
	if err != nil {
		g.t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", method, target); err != nil {
		g.t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		g.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

func TestAWrongTokenIsNone(t *testing.T) {
	g := newGuarded(t, nil)
	for _, shown := range []string{
		"Bearer", "Bearer ", "Bearer x", "Basic " + g.operator, g.operator, "Bearer " + g.operator + "x", "Bearer  " + g.operator,
		"Bearer " + strings.ToUpper(g.operator), "Bearer " + g.operator[:len(g.operator)-1], "Bearer " + g.operator + " " + g.operator,
	} {
		if status, body, _ := g.ask("GET", "/api/jobs", "", "Authorization: "+shown); status != 401 {
			t.Errorf("%q: got %d %s", shown, status, body)
		}
	}
	// The hash that is in the file lets nobody in.
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	_, hash, _ := strings.Cut(strings.Fields(string(text))[2], ":")
	if status, _, _ := g.ask("GET", "/api/jobs", "", bearer(hash)); status != 401 {
		t.Errorf("the hash: got %d", status)
	}
	if strings.Contains(string(text), g.operator) {
		t.Error("the token itself is in the file")
	}
}

func TestATokenThatIsRevokedEndsItsSessions(t *testing.T) {
	g := newGuarded(t, nil)
	cookie := g.signIn(g.operator)
	if status, body, _ := g.ask("POST", "/jobs/o-1/ask/pause", "", "Cookie: "+cookie); status != 200 || body != "in anna operator" {
		t.Fatalf("got %d %s", status, body)
	}
	if n, err := login.Revoke(g.file, "anna", ""); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for _, header := range []string{"Cookie: " + cookie, bearer(g.operator)} {
		if status, body, _ := g.ask("GET", "/api/jobs", "", header); status != 401 {
			t.Errorf("%.10s: got %d %s after it was revoked", header, status, body)
		}
	}
	if status, _, _ := g.ask("GET", "/api/jobs", "", bearer(g.reader)); status != 200 {
		t.Errorf("another one's token: got %d", status)
	}
}

// A slip in the file must not let in who was revoked in it.
func TestAFileThatIsWrongLetsNobodyIn(t *testing.T) {
	g := newGuarded(t, nil)
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(g.file, append(text, "eve operator sha256:12\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, body, _ := g.ask("GET", "/api/jobs", "", bearer(g.operator)); status != 503 || strings.Contains(body, "eve") {
		t.Errorf("got %d %s", status, body)
	}
	if err := os.WriteFile(g.file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := g.ask("GET", "/api/jobs", "", bearer(g.operator)); status != 200 {
		t.Errorf("mended: got %d", status)
	}
	if err := os.Chmod(g.file, 0o622); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := g.ask("GET", "/api/jobs", "", bearer(g.operator)); status != 503 {
		t.Errorf("of a file that others may write: got %d", status)
	}
}

// signIn fills the form, and returns the cookie.
func (g *guarded) signIn(token string, headers ...string) string {
	g.t.Helper()
	body := url.Values{"token": {token}, "next": {"/errors?x=1"}}.Encode()
	status, text, header := g.ask("POST", "/login", body, append(headers, "Content-Type: application/x-www-form-urlencoded")...)
	if status != 303 || header.Get("Location") != "/errors?x=1" {
		g.t.Fatalf("got %d %s to %q", status, text, header.Get("Location"))
	}
	cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	return cookie
}

func TestABrowserSignsInAndOut(t *testing.T) {
	g := newGuarded(t, nil)
	status, _, header := g.ask("GET", "/errors?x=1", "", "Accept: text/html")
	if status != 303 || header.Get("Location") != "/login?next=%2Ferrors%3Fx%3D1" {
		t.Fatalf("got %d to %q, want the form", status, header.Get("Location"))
	}
	if status, body, _ := g.ask("GET", "/login?next=/errors", "", "Accept: text/html"); status != 200 || !strings.Contains(body, `name="token"`) || !strings.Contains(body, `value="/errors"`) {
		t.Errorf("got %d %s", status, body)
	}
	status, _, header = g.ask("POST", "/login", "token="+g.reader, "Content-Type: application/x-www-form-urlencoded")
	set := header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"} {
		if !strings.Contains(set, want) {
			t.Errorf("got the cookie %q, want %s", set, want)
		}
	}
	if strings.Contains(set, g.reader) || status != 303 {
		t.Errorf("got %d, and the cookie %q", status, set)
	}
	cookie := g.signIn(g.reader)
	if status, body, _ := g.ask("GET", "/", "", "Cookie: "+cookie); status != 200 || body != "in rob reader" {
		t.Errorf("got %d %s", status, body)
	}
	if status, body, _ := g.ask("POST", "/jobs/o-1/ask/pause", "", "Cookie: "+cookie); status != 403 {
		t.Errorf("a reader's pause: got %d %s", status, body)
	}
	if status, _, _ := g.ask("POST", "/logout", "", "Cookie: "+cookie); status != 303 {
		t.Errorf("got %d", status)
	}
	if status, _, _ := g.ask("GET", "/api/jobs", "", "Cookie: "+cookie); status != 401 {
		t.Errorf("signed out: got %d", status)
	}
}

func TestNoOtherSiteSignsABrowserInOrOut(t *testing.T) {
	g := newGuarded(t, nil)
	form := "Content-Type: application/x-www-form-urlencoded"
	for _, foreign := range [][]string{{"Sec-Fetch-Site: cross-site"}, {"Sec-Fetch-Site: same-site"}, {"Origin: https://evil.example"}} {
		for _, path := range []string{"/login", "/logout"} {
			if status, body, header := g.ask("POST", path, "token="+g.operator, append(foreign, form)...); status != 403 || header.Get("Set-Cookie") != "" {
				t.Errorf("%s %v: got %d %s", path, foreign, status, body)
			}
		}
	}
	for _, next := range []string{"https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example", "javascript:alert(1)", ""} {
		body := url.Values{"token": {g.operator}, "next": {next}}.Encode()
		if _, _, header := g.ask("POST", "/login", body, form); header.Get("Location") != "/" {
			t.Errorf("next %q leads to %q", next, header.Get("Location"))
		}
	}
	for token, want := range map[string]int{"": 401, "x": 401, g.agent: 403} {
		if status, _, header := g.ask("POST", "/login", "token="+token, form); status != want || header.Get("Set-Cookie") != "" {
			t.Errorf("token %.8q: got %d, want %d", token, status, want)
		}
	}
}

func TestACookieIsSecureWhereTLSIs(t *testing.T) {
	g := newGuarded(t, func(c *login.Config) { c.Secure = true })
	cookie := g.signIn(g.operator)
	if !strings.HasPrefix(cookie, "__Host-makegood=") {
		t.Errorf("got %q", cookie)
	}
	_, _, header := g.ask("POST", "/login", "token="+g.operator, "Content-Type: application/x-www-form-urlencoded")
	if set := header.Get("Set-Cookie"); !strings.Contains(set, "Secure") {
		t.Errorf("got %q", set)
	}
	// One of the other name was set by who can set no __Host- cookie.
	if status, _, _ := g.ask("GET", "/api/jobs", "", "Cookie: "+strings.TrimPrefix(cookie, "__Host-")); status != 401 {
		t.Errorf("got %d", status)
	}
}

func proxied(from string) func(*login.Config) {
	return func(c *login.Config) {
		c.Tokens = nil
		c.Proxy = login.Proxy{Header: "X-Forwarded-User", From: []netip.Prefix{netip.MustParsePrefix(from)}, Operators: []string{"anna"}}
	}
}

func TestATrustedProxyNamesItsCallers(t *testing.T) {
	g := newGuarded(t, proxied("127.0.0.0/8"))
	for headers, want := range map[string]string{
		"X-Forwarded-User: anna":                         "200 in anna operator",
		"X-Forwarded-User: rob":                          "403",
		"X-Forwarded-User: ":                             "401",
		"X-Forwarded-User: rob\nX-Forwarded-User: anna":  "401",
		"X-Forwarded-User: anna\nX-Forwarded-User: rob":  "401",
		"X_Forwarded_User: anna":                         "401",
		"Makegood-Who: anna":                             "401",
		"X-Forwarded-User: " + strings.Repeat("a", 1000): "401",
		"X-Forwarded-User: rob\nX-Role: operator\nMakegood-Who: anna\nX-Operator: yes": "403",
	} {
		status, body, _ := g.ask("POST", "/api/jobs", "{}", strings.Split(headers, "\n")...)
		if got := fmt.Sprintf("%d %s", status, body); !strings.HasPrefix(got, want) {
			t.Errorf("%.60q: got %s, want %s", headers, got, want)
		}
	}
}

func TestAHeaderOfAnybodyElseIsNotBelieved(t *testing.T) {
	g := newGuarded(t, proxied("10.0.0.0/8"))
	for _, spoofed := range [][]string{
		{"X-Forwarded-User: anna"},
		{"X-Forwarded-User: anna", "X-Forwarded-For: 10.0.0.1", "X-Real-Ip: 10.0.0.1", "Forwarded: for=10.0.0.1"},
	} {
		if status, body, _ := g.ask("GET", "/api/jobs", "", spoofed...); status != 401 {
			t.Errorf("%v: got %d %s", spoofed, status, body)
		}
	}
}

func TestTheProxySaysTheRoleInASecondHeader(t *testing.T) {
	g := newGuarded(t, func(c *login.Config) {
		c.Proxy = login.Proxy{Header: "X-User", RoleHeader: "X-Role", From: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	})
	for role, want := range map[string]int{"operator": 200, "Operator": 200, "reader": 403, "": 403, "operator, reader": 403, "admin": 403} {
		if status, _, _ := g.ask("POST", "/api/jobs", "{}", "X-User: eve", "X-Role: "+role); status != want {
			t.Errorf("role %q: got %d, want %d", role, status, want)
		}
	}
	if status, _, _ := g.ask("POST", "/api/jobs", "{}", "X-User: eve", "X-Role: reader", "X-Role: operator"); status != 403 {
		t.Errorf("two roles: got %d", status)
	}
	// A proxy has no say in who an agent is.
	if status, _, _ := g.ask("POST", "/api/agents/payments/tasks", "{}", "X-User: payments", "X-Role: agent"); status != 401 {
		t.Errorf("an agent: got %d", status)
	}
}

func TestAProxyOfWhichAnybodyCouldSpeakIsRefused(t *testing.T) {
	from := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	for says, p := range map[string]login.Proxy{
		"--trust-proxy is missing":  {Header: "X-User"},
		"--trust-header is missing": {From: from},
		"sets itself":               {Header: "authorization", From: from},
		"set one":                   {Header: "X-User", From: from, RoleHeader: "X-Role", Operators: []string{"anna"}},
	} {
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

func TestALineThatIsWrongIsNamed(t *testing.T) {
	hash := "sha256:" + strings.Repeat("0f", 32)
	for line, says := range map[string]string{
		"anna operator":                                      ":3: want NAME ROLE",
		"anna admin " + hash:                                 `the role "admin"`,
		"anna operator md5:12":                               "the hash",
		"anna operator sha256:12":                            "the hash",
		"anna operator " + hash + "\nanna reader " + hash:    ":4: anna is a operator already",
		strings.Repeat("n", 400) + " operator " + hash:       "the name",
		"anna operator " + hash + " and more":                "want NAME ROLE",
		"anna operator " + strings.Replace(hash, "0", "", 1): "the hash",
	} {
		file := filepath.Join(t.TempDir(), "tokens")
		if err := os.WriteFile(file, []byte("# who\n\n"+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := login.OpenTokens(file); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), file) {
			t.Errorf("%.40q: got %v, want %q", line, err, says)
		}
	}
	if _, err := login.OpenTokens(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there is no file of tokens")
	}
}

func TestATokenIsWrittenBehindWhatIsThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("# ours, without an end of the line"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := login.NewToken(file, "anna", login.Operator); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := login.NewToken(file, "anna", login.Reader); err == nil {
		t.Error("anna got a second role")
	}
	if _, err := login.NewToken(file, "an na", login.Reader); err == nil {
		t.Error("a name got a space")
	}
	all, err := login.ReadTokens(file)
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	if n, err := login.Revoke(file, "anna", all[1].Short()); n != 1 || err != nil {
		t.Error(n, err)
	}
	left, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(left), "# ours") || strings.Count(string(left), "anna") != 2 {
		t.Errorf("got %s, %v", left, err)
	}
}
