package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/examples/travel/agency"
	"github.com/makegood-dev/makegood/examples/travel/trips"
)

const (
	minBookings, maxBookings = 10, 100_000
	// maxOutage is below the half hour for which the workflow tries again.
	maxOutage = 20 * time.Minute
	// firstCents is the price of the first trip; each further trip costs a cent more.
	firstCents = 10000
	// opens is how long an office may take to open, and away how long it is away after its kill.
	opens, away = 2 * time.Minute, time.Second
	// patience is how long all trips may take, beside the outage.
	patience = 10 * time.Minute
)

// asOffice is set in the environment of an office: the binary of the tests is one, too.
const asOffice = "TRAVEL_OFFICE"

// outage is what befalls a service.
type outage struct {
	service string
	how     agency.Outage
	means   string
}

// first and second are the outages: trips wait before their payment when the second ones begin.
var (
	first  = []outage{{"payments", agency.Errors, "answer 503"}}
	second = []outage{{"hotels", agency.Refuses, "refuse connections"}, {"cars", agency.Hangs, "take requests, and never answer"}}
)

// demo books trips through an outage and a kill.
type demo struct {
	bookings int
	outage   time.Duration
	out      io.Writer

	data   string
	addr   string // of the office; port 0 before its first life
	env    []string
	agency *agency.Agency
	office *exec.Cmd
	client *client.Client
	began  time.Time
}

func (d *demo) run(ctx context.Context) (err error) {
	if d.bookings < minBookings || d.bookings > maxBookings || d.outage <= 0 || d.outage > maxOutage {
		return fmt.Errorf("%d bookings, and an outage of %s: want %d to %d, and up to %s", d.bookings, d.outage, minBookings, maxBookings, maxOutage)
	}
	ctx, cancel := context.WithTimeout(ctx, patience+d.outage)
	defer cancel()
	if d.data, err = os.MkdirTemp("", "makegood-travel-"); err != nil {
		return err
	}
	defer os.RemoveAll(d.data)
	d.addr, d.began, d.agency = "127.0.0.1:0", time.Now(), agency.New()
	defer func() { err = errors.Join(err, d.agency.Close()) }()
	if err := d.serve(ctx); err != nil {
		return err
	}
	if err := d.open(ctx); err != nil {
		return err
	}
	defer d.kill()
	if d.client, err = client.New("http://"+d.addr+"/makegood", client.WithPatience(time.Minute)); err != nil {
		return err
	}
	d.say("%d trips, please. The office is a process of its own (%d); the page: http://%s/makegood/", d.bookings, d.office.Process.Pid, d.addr)
	if err := d.book(ctx); err != nil {
		return err
	}
	return d.compare(ctx)
}

// say prints a line, and how much time has passed.
func (d *demo) say(format string, values ...any) {
	fmt.Fprintf(d.out, "%6.1f s  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, values...))
}

// serve opens the services at free ports.
func (d *demo) serve(ctx context.Context) error {
	for _, service := range agency.Services {
		url, err := d.agency.Serve(ctx, service, "127.0.0.1:0")
		if err != nil {
			return err
		}
		d.env = append(d.env, strings.ToUpper(service)+"_URL="+url)
	}
	return nil
}

// open starts the office, which is this program, and waits until it serves.
func (d *demo) open(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	d.office = exec.Command(program, "office", "-data", d.data, "-addr", d.addr)
	d.office.Env = append(append(os.Environ(), d.env...), asOffice+"=1")
	d.office.Stderr = io.Discard // It warns of each outage.
	said, err := d.office.StdoutPipe()
	if err != nil {
		return err
	}
	if err := d.office.Start(); err != nil {
		return err
	}
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(said).ReadString('\n') // A dying office sends no text.
		line <- text
	}()
	select {
	case text := <-line:
		_, rest, _ := strings.Cut(text, "office: http://")
		if addr, _, ok := strings.Cut(rest, " "); ok {
			d.addr = addr
			return nil
		}
	case <-time.After(opens):
	case <-ctx.Done():
	}
	d.kill()
	return fmt.Errorf("the office did not open within %s", opens)
}

// kill ends the office by SIGKILL: no handler runs, no cleanup is done.
func (d *demo) kill() {
	_ = d.office.Process.Kill()
	_ = d.office.Wait() // It says that it was killed.
}

// book books all trips, three quarters while services are down, and kills the office in the middle.
func (d *demo) book(ctx context.Context) error {
	quarter := d.bookings / 4
	if err := d.submit(ctx, 0, quarter); err != nil {
		return err
	}
	ends := time.After(d.outage)
	if err := d.down(first); err != nil {
		return err
	}
	if err := d.submit(ctx, quarter, 2*quarter); err != nil {
		return err
	}
	if err := d.down(second); err != nil {
		return err
	}
	rest := make(chan error, 1)
	go func() { rest <- d.submit(ctx, 2*quarter, d.bookings) }()
	d.pass(ctx, d.outage/2)
	d.kill()
	d.say("kill -9 %d: the office is gone in the middle of the outage", d.office.Process.Pid)
	d.pass(ctx, away)
	if err := d.open(ctx); err != nil {
		return err
	}
	d.say("it is back (%d), on the same folder", d.office.Process.Pid)
	select {
	case <-ends:
	case <-ctx.Done():
	}
	for _, service := range agency.Services {
		if err := d.agency.Break(service, agency.Up); err != nil {
			return err
		}
	}
	d.say("all services are up again, after %s", d.outage)
	return <-rest
}

// down begins outages.
func (d *demo) down(outages []outage) error {
	for _, o := range outages {
		if err := d.agency.Break(o.service, o.how); err != nil {
			return err
		}
		d.say("outage: %s %s", o.service, o.means)
	}
	return nil
}

func (d *demo) pass(ctx context.Context, lasts time.Duration) {
	select {
	case <-time.After(lasts):
	case <-ctx.Done():
	}
}

func tripID(i int) string { return fmt.Sprintf("trip-%05d", i) }

// submit submits the trips of a range. A client tries again while the office is away.
func (d *demo) submit(ctx context.Context, from, to int) error {
	for i := from; i < to; i++ {
		input, err := json.Marshal(trips.Trip{Customer: fmt.Sprint("c-", i%97), Flight: "LH 400", Hotel: "Ritz", Car: "Mini", Cents: firstCents + i})
		if err != nil {
			return err
		}
		if _, err := d.client.Submit(ctx, makegood.Submission{Workflow: "trip", ID: tripID(i), Input: input}); err != nil {
			return fmt.Errorf("book %s: %w", tripID(i), err)
		}
	}
	return nil
}

// compare waits for all trips, and compares the ledger with them.
func (d *demo) compare(ctx context.Context) error {
	ends, failures := map[string]makegood.ProcessState{}, map[string]int{}
	var wrong []string
	for i := range d.bookings {
		job, err := d.client.Wait(ctx, tripID(i))
		if err != nil {
			return fmt.Errorf("wait for %s: %w", tripID(i), err)
		}
		ends[job.ID] = job.ProcessState
		for _, step := range job.Steps {
			failures[step.Name] += step.FailureCount
		}
		if job.ProcessState != makegood.JobProcessed {
			wrong = append(wrong, fmt.Sprintf("%s is %s: %s", job.ID, job.ProcessState, job.Reason))
		}
	}
	wrong = append(wrong, agency.Check(d.agency.Ledger(), ends)...)
	lines, cents, canceled := 0, 0, 0
	for _, line := range d.agency.Ledger() {
		lines++
		cents += line.Cents
		if line.Canceled {
			canceled++
		}
	}
	if want := d.bookings*firstCents + d.bookings*(d.bookings-1)/2; cents != want || canceled > 0 {
		wrong = append(wrong, fmt.Sprintf("charged: %d cents, %d lines canceled, want %d and none", cents, canceled, want))
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d things are wrong:\n%s", len(wrong), strings.Join(wrong, "\n"))
	}
	d.say("attempts that failed: %d of hotels, %d of cars, %d of payments", failures["hotel"], failures["car"], failures["payment"])
	d.say("%d trips: all Processed, none undone; the ledger has %d lines, each once, and %d.%02d EUR", d.bookings, lines, cents/100, cents%100)
	return nil
}
