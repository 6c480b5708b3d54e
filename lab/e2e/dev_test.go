package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/sample/services"
	"github.com/makegood-dev/makegood/internal/testkit/address"
	"github.com/makegood-dev/makegood/internal/testkit/seed"
)

// devServer is makegood dev as a process.
type devServer struct {
	t      testing.TB
	cmd    *exec.Cmd
	url    string
	stderr *bytes.Buffer
}

// dev starts makegood dev on the shop's workflow and folder, and waits until it serves.
func (s *shop) dev(addr string, args ...string) *devServer {
	s.t.Helper()
	flows := filepath.Join(s.dir, "flows")
	if err := os.MkdirAll(filepath.Join(flows, "below"), 0o755); err != nil {
		s.t.Fatal(err)
	}
	yaml, err := os.ReadFile(filepath.Join(s.dir, "order.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("flows/below/order.yaml", yaml)
	d := &devServer{t: s.t, stderr: &bytes.Buffer{}}
	args = append([]string{"dev", "--addr", addr, "--workflows", flows, "--data", filepath.Join(s.dir, "data")}, args...)
	d.cmd = exec.Command(program, args...)
	d.cmd.Env = append(os.Environ(), "MAKEGOOD_SHOP="+s.open.URL())
	d.cmd.Stderr = d.stderr
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(d.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "makegood serves ")
	if err != nil || !ok {
		s.t.Fatalf("makegood dev says %q, %v: %s", line, err, d.stderr)
	}
	d.url = url
	return d
}

func (d *devServer) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

// verb runs a verb against the server.
func (d *devServer) verb(stdin string, args ...string) (code int, stdout, stderr string) {
	d.t.Helper()
	return runProgram(d.t, stdin, append(args, "--addr", d.url)...)
}

func runProgram(t testing.TB, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// freeAddr returns an address on which nobody listens, so that a server can come back to it.
func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := address.Free()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// 500 jobs are submitted over HTTP while the server is killed three times. Whatever was answered is a
// job, every job ends, the shop's ledger agrees, and nobody was answered twice that they made the job.
func TestJobsSubmittedToAServerThatIsKilledAllEnd(t *testing.T) {
	const jobs, submitters, kills = 500, 16, 3
	seed := seed.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	s := openShop(t, services.Options{Script: services.Script{Profile: services.FaultsNone}})
	addr := freeAddr(t)
	server := s.dev(addr)
	c, err := client.New(server.url, client.WithPatience(5*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	progress := make(chan int, jobs)
	var all sync.WaitGroup
	ids := make(chan int)
	for range submitters {
		all.Go(func() {
			for i := range ids {
				id := fmt.Sprintf("d-%04d", i)
				input := fmt.Sprintf(`{"id":%q,"customer":"c","total":10}`, id)
				if _, err := c.Submit(t.Context(), makegood.Submission{Workflow: "order", ID: id, Input: json.RawMessage(input)}); err != nil {
					t.Errorf("submit %s: %v", id, err)
				}
				progress <- i
			}
		})
	}
	go func() {
		defer close(ids)
		for i := range jobs {
			ids <- i
		}
	}()
	for range kills {
		// The kill comes after some of the answers, and so between others.
		for range 80 + random.IntN(60) {
			<-progress
		}
		server.kill()
		server = s.dev(addr)
	}
	all.Wait()
	ends := map[string]makegood.ProcessState{}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for i := range jobs {
		job, err := c.Wait(ctx, fmt.Sprintf("d-%04d", i))
		if err != nil {
			t.Fatalf("a job that was answered is not there, or does not end: %v", err)
		}
		ends[job.ID] = job.ProcessState
		if job.ProcessState != makegood.JobProcessed {
			t.Errorf("job %s: got %s (%s), want Processed", job.ID, job.ProcessState, job.Reason)
		}
	}
	listed := 0
	for _, err := range c.List(t.Context(), api.Filter{State: makegood.JobProcessed, Workflow: "order"}) {
		if err != nil {
			t.Fatal(err)
		}
		listed++
	}
	if listed != jobs {
		t.Errorf("the list has %d jobs, want %d", listed, jobs)
	}
	for _, v := range services.Check(s.open.Ledger(), ends) {
		t.Error(v)
	}
	server.stops(t)
}

// stops ends the server as a person does, and wants it to be in order.
func (d *devServer) stops(t *testing.T) {
	t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("stopped: got %v, want exit code 0: %s", err, d.stderr)
	}
}

// The verbs against a server, as a person uses them.
func TestTheVerbsOverASubmittedJob(t *testing.T) {
	s := openShop(t, services.Options{Script: services.Script{Profile: services.FaultsNone}})
	d := s.dev("127.0.0.1:0")
	order := `{"id":"o-1","customer":"c-1","total":9.5}`
	s.write("o-1.json", []byte(order))
	file := "@" + filepath.Join(s.dir, "o-1.json")
	for _, step := range []struct {
		stdin          string
		args           string
		code           int
		stdout, stderr string
	}{
		{"", "submit order --id o-1 --wait --input " + file, 0, "o-1  order  Processed\n", ""},
		{order, "submit order --id o-1 --input -", 0, "o-1\n", "it was there already, with the same content\n"},
		{"", "submit order --id o-1 --input 7", 1, "", "give it another --id"},
		{"", "submit nobody", 1, "", `there is no workflow "nobody"; there are [order]`},
		{"", "submit order --input {", 1, "", "--input is not JSON"},
		{"", "submit order --start-at tomorrow", 1, "", "--at tomorrow: want a time as in RFC 3339"},
		{"", "get o-1", 0, "  charge   done, attempt 1\n", ""},
		{"", "get o-2", 1, "", "there is no such job; `makegood list"},
		{"", "list --state Processed --workflow order", 0, "o-1  order     Processed  0", ""},
		{"", "list --state Error", 0, "no jobs\n", ""},
		{"", "list --state Broken", 1, "", "--state Broken: want one of"},
		{"", "cancel o-1", 1, "", "refused: it is Processed; undo takes it back"},
		{"", "pause o-1", 1, "", "refused: it is Processed; no step is left to pause"},
		{"", "resume o-1", 1, "", "refused: it is Processed, not paused"},
		{"", "resubmit o-1", 1, "", "refused: it is Processed; submit a new job to do it again"},
		{"", "undo o-1 --reason changed-my-mind", 0, ": changed-my-mind\n", ""},
		{"", "watch o-1", 2, "o-1  order  Undone: changed-my-mind", ""},
		{"", "submit order --id o-1 --wait --input " + file, 2, "o-1  order  Undone", "it was there already"},
		{"", "cancel o-1", 1, "", "refused: it is Undone; there is no step to cancel"},
		{"", "resubmit o-1", 0, "o-1  order  Processing", ""},
		{"", "watch o-1", 0, "o-1  order  Processed", ""},
	} {
		code, stdout, stderr := d.verb(step.stdin, strings.Fields(step.args)...)
		if code != step.code || !strings.Contains(stdout, step.stdout) || !strings.Contains(stderr, step.stderr) || step.stderr == "" && stderr != "" {
			t.Errorf("makegood %s: got code %d\n%s%s\nwant code %d\n%s%s", step.args, code, stdout, stderr, step.code, step.stdout, step.stderr)
		}
	}
	_, fromServer, _ := d.verb("", "get", "o-1", "--json")
	_, list, _ := d.verb("", "list", "--json")
	d.stops(t)
	data := filepath.Join(s.dir, "data")
	_, fromFolder, _ := runProgram(t, "", "get", "o-1", "--json", "--data", data)
	var job makegood.Job
	if err := json.Unmarshal([]byte(fromServer), &job); err != nil || job.Round != 2 || string(job.Input) != `{"customer":"c-1","id":"o-1","total":9.5}` {
		t.Errorf("get --json: got %s, %v, want the job in its second round, with its input", fromServer, err)
	}
	// A folder that is only read evaluates nothing, so that it has no word of what a step was asked.
	stored, _, asked := strings.Cut(fromServer, `,"sent":[`)
	if !asked || strings.TrimSpace(fromFolder) != stored+"}" {
		t.Errorf("get --json from the folder and from the server:\n%s%s", fromFolder, fromServer)
	}
	if _, folderList, _ := runProgram(t, "", "list", "--json", "--data", data); folderList != list || !strings.Contains(list, `"id":"o-1"`) {
		t.Errorf("list --json from the folder and from the server:\n%s%s", folderList, list)
	}
	if code, _, stderr := d.verb("", "get", "o-1"); code != 3 || !strings.Contains(stderr, "is `makegood dev` running? --addr names it") {
		t.Errorf("nobody serves: got code %d, %s, want 3 and what to do", code, stderr)
	}
	if code, _, stderr := runProgram(t, "", "list", "--data", s.dir); code != 1 || !strings.Contains(stderr, "is --data the folder that") {
		t.Errorf("no folder of ours: got code %d, %s, want 1 and what to do", code, stderr)
	}
}

// Who is registered is told of every change of a job that names them; an address is no name.
func TestWhoIsRegisteredIsTold(t *testing.T) {
	told := make(chan string, 100)
	listener := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var a struct{ Job, ProcessState string }
		_ = json.NewDecoder(r.Body).Decode(&a) // what is not JSON is none of those that are waited for
		told <- a.Job + " " + a.ProcessState
	}))
	defer listener.Close()
	s := openShop(t, services.Options{Script: services.Script{Profile: services.FaultsNone}})
	d := s.dev("127.0.0.1:0", "--reply", "shop="+listener.URL)
	input := `{"id":"o-1","customer":"c-1","total":9.5}`
	if code, _, stderr := d.verb(input, "submit", "order", "--id", "o-1", "--input", "-", "--reply-to", listener.URL); code != 1 || !strings.Contains(stderr, "is not registered; registered are [shop]") {
		t.Errorf("a URL as --reply-to: got code %d, %s, want it refused", code, stderr)
	}
	if code, _, stderr := d.verb(input, "submit", "order", "--id", "o-1", "--input", "-", "--reply-to", "shop"); code != 0 {
		t.Fatalf("submit: got code %d, %s", code, stderr)
	}
	for deadline := time.After(2 * time.Minute); ; {
		select {
		case got := <-told:
			if got == "o-1 Processed" {
				return
			}
		case <-deadline:
			t.Fatal("nobody was told that the job is Processed")
		}
	}
}

// A workflow file that is wrong, or a workflow that is there twice, stops the server before anything
// runs, with all that is wrong.
func TestAWrongWorkflowFileStopsTheServer(t *testing.T) {
	s := openShop(t, services.Options{})
	flows := filepath.Join(s.dir, "flows")
	if err := os.Mkdir(flows, 0o755); err != nil {
		t.Fatal(err)
	}
	good := "name: tiny\nsteps: [{name: ship, agent: shipping}]\n"
	s.write("flows/a.yaml", []byte(good))
	s.write("flows/b.yaml", []byte(good))
	s.write("flows/c.yaml", []byte("name: Bad\nsteps: [{name: a, agent: nobody}]\n"))
	data := filepath.Join(s.dir, "data")
	code, stdout, stderr := runProgram(t, "", "dev", "--workflows", flows, "--data", data, "--addr", "127.0.0.1:0")
	for _, want := range []string{"c.yaml:1: ", `no agent "nobody"`, "b.yaml: the workflow tiny is in ", "a.yaml already"} {
		if code != 1 || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("got code %d, %q, %s, want 1 and %q", code, stdout, stderr, want)
		}
	}
	if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data folder: got %v, want none made", err)
	}
	for args, want := range map[string]string{
		"dev --workflows " + s.dir + "/none":                  "--workflows names the folder of your workflow files",
		"dev --workflows " + s.dir + "/data2":                 "--workflows names",
		"dev --addr 4777 --workflows ../../workflows":         "--addr 4777: want HOST:PORT, such as 127.0.0.1:4777",
		"dev --addr 127.0.0.1:1x --workflows ../../workflows": "--addr names another address",
		"dev surplus":                       "makegood dev --help says how it is used",
		"get x --addr 127.0.0.1:1 --data y": "[addr data]",
		"list --limit 0":                    "--limit 0: want at least 1",
		"list --addr ftp://x":               "--addr: \"ftp://x\" is not the URL of an API",
	} {
		if code, _, stderr := runProgram(t, "", strings.Fields(args)...); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("makegood %s: got code %d, %s, want 1 and %q", args, code, stderr, want)
		}
	}
}
