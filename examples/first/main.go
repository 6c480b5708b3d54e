// Command first is the program that README.md shows: a trip whose hotel is full, so that its flight is given back.
package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/engine"
)

//go:embed trip.yaml
var files embed.FS

func flight(ctx context.Context, who string) (string, error) { return "LH 400 for " + who, nil }

func cancel(ctx context.Context, who string, booked *string) error { // booked is nil where nobody knows whether it was
	fmt.Println("given back: the flight of", who)
	return nil
}

func hotel(ctx context.Context, who string) (string, error) {
	return "", agent.Final(agent.NotApplied(errors.New("no room"))) // any other error is tried again
}

func main() {
	travel := agent.New("travel", agent.Do("flight", flight).Undo("cancel", cancel), agent.Do("hotel", hotel))
	ctx := context.Background()
	eng, err := engine.Open(ctx, engine.Options{Dir: "trip-data", Workflows: files, Agents: []agent.Handler{travel}})
	if err != nil {
		log.Fatal(err)
	}
	go eng.Run(ctx)
	_, err = eng.Submit(ctx, makegood.Submission{Workflow: "trip", ID: "t-1", Input: json.RawMessage(`"Ada"`)})
	if err != nil {
		log.Fatal(err)
	}
	job, err := eng.Wait(ctx, "t-1")
	fmt.Println(job.ProcessState, job.Reason, err)
}
