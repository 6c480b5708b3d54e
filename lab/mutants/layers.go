package main

import (
	"maps"
	"slices"
)

// layer is one kind of proof: commands of go test, one after the other.
type layer struct {
	name string
	runs [][]string
}

const (
	// simulated is how many seeds of the simulation are tried on a mutant.
	simulated = "200"
	// models are the configurations of the model check that are tried on a mutant: those of few states.
	models = "^TestSmallModels$/^(two_attempts,_looked_at|stop,_side_by_side|pause|lies|batches,_three_attempts|two_attempts)$"
	// tooLong are the tests of the embedded engine that take longer than all others together.
	tooLong = "WhicheverTwoCalls|WhicheverCall|AWideJobSends|OnHostileQueues|OnABadDay|TwoThousandJobs"
	// slow are the tests of the Scheduler that take longer than all others together: they are asked last.
	slow = "LargeFanIn|EvaluationsOfABatch|FanInThatReads|WhatTwoStepsRead"
	// slowOnDisk and slowOverHTTP are those of the store in SQLite, and of an agent over HTTP.
	slowOnDisk   = "BoundedInNumberAndBytes|AtAThousandDecodedJobs|ALogThatIsRemovedOrReplaced"
	slowOverHTTP = "ADiskThatIsFull"
	// noFailFile: rapid keeps what fails in the tree, from which it is tried again; that of a mutant must not be.
	noFailFile = "-rapid.nofailfile"
)

func tests(folder string, args ...string) []string { return append([]string{"./" + folder}, args...) }

var (
	embedded   = tests("internal/embedded", "-skip", tooLong)
	simulation = layer{"simulation", [][]string{tests("lab/sim", "-run", "^TestSimulate$", "-seeds", simulated)}}
	modelCheck = layer{"model check", [][]string{tests("lab/modelcheck", "-run", models)}}
)

// proofs are the layers that a package is held by, the fastest first. Its own tests are asked first, then those of the
// packages above it.
var proofs = map[string][]layer{
	"internal/machine": {
		{"own tests", [][]string{tests("internal/machine", noFailFile)}},
		{"tests above", [][]string{tests("internal/scheduler", "-skip", slow), embedded}},
		modelCheck, simulation,
	},
	"internal/store/may.go": {
		{"own tests", [][]string{tests("internal/store"), tests("internal/store/memstore"), tests("internal/store/storetest")}},
		{"tests above", [][]string{tests("internal/machine", noFailFile), tests("internal/scheduler", "-skip", slow), tests("internal/agentrun"), embedded}},
		modelCheck, simulation,
	},
	"internal/scheduler": {
		{"own tests", [][]string{tests("internal/scheduler", "-skip", slow), tests("internal/scheduler", "-run", slow)}},
		{"tests above", [][]string{tests("internal/httpapi"), embedded}},
		simulation,
	},
	"internal/changes":            {{"own tests", [][]string{tests("internal/changes")}}, {"tests above", [][]string{tests("internal/embedded", "-run", "Changes"), tests("engine", "-run", "Change")}}},
	"internal/timetable":          {{"own tests", [][]string{tests("internal/timetable")}}},
	"internal/schedule":           {{"own tests", [][]string{tests("internal/schedule")}}, {"tests above", [][]string{tests("internal/timetable")}}},
	"internal/fenced":             {{"own tests", [][]string{tests("internal/fenced")}}, {"tests above", [][]string{tests("agent/sqlitefence"), tests("agent/dynamofence")}}},
	"agent/sqlitefence":           {{"own tests", [][]string{tests("agent/sqlitefence")}}},
	"agent/dynamofence":           {{"own tests", [][]string{tests("agent/dynamofence")}}},
	"internal/putaway":            {{"own tests", [][]string{tests("internal/putaway")}}},
	"internal/pause":              {{"own tests", [][]string{tests("internal/pause")}}},
	"internal/plain":              {{"own tests", [][]string{tests("internal/plain")}}},
	"internal/secret":             {{"own tests", [][]string{tests("internal/secret")}}},
	"internal/notify":             {{"own tests", [][]string{tests("internal/notify")}}, {"tests above", [][]string{tests("internal/notify/...")}}},
	"internal/notify/groupnotify": {{"own tests", [][]string{tests("internal/notify/groupnotify")}}},
	"internal/notify/replynotify": {{"own tests", [][]string{tests("internal/notify/replynotify")}}},
	"internal/notify/webhook":     {{"own tests", [][]string{tests("internal/notify/webhook")}}},
	"internal/notify/awsnotify":   {{"own tests", [][]string{tests("internal/notify/awsnotify")}}},
	"internal/store":              {{"own tests", [][]string{tests("internal/store"), tests("internal/store/memstore"), tests("internal/store/storetest")}}, {"tests above", [][]string{tests("internal/scheduler", "-skip", slow), tests("internal/supervisor"), embedded}}},
	"internal/store/memstore":     {{"own tests", [][]string{tests("internal/store/memstore"), tests("internal/store/storetest")}}, {"tests above", [][]string{tests("internal/timetable"), tests("internal/holds")}}},
	"internal/store/sqlitestore":  {{"own tests", [][]string{tests("internal/store/sqlitestore", "-skip", slowOnDisk), tests("internal/store/sqlitestore", "-run", slowOnDisk)}}, {"tests above", [][]string{embedded}}},
	"internal/store/dynamostore":  {{"own tests", [][]string{tests("internal/store/dynamostore")}}},
	"internal/agentdoor":          {{"own tests", [][]string{tests("internal/agentdoor")}}, {"tests above", [][]string{tests("internal/httpapi", "-run", "Agent|Attempt|Task|Payload")}}},
	"onhttp":                      {{"own tests", [][]string{tests("onhttp", "-skip", slowOverHTTP), tests("onhttp", "-run", slowOverHTTP)}}},
	"internal/agentrun": {
		{"own tests", [][]string{tests("internal/agentrun")}},
		{"tests above", [][]string{embedded}},
		simulation,
	},
	"internal/supervisor": {
		{"own tests", [][]string{tests("internal/supervisor")}},
		{"tests above", [][]string{embedded}},
		simulation,
	},
}

// covered are the packages that have proofs.
func covered() []string { return slices.Sorted(maps.Keys(proofs)) }

// deciding are those of the code that decides, which are tried unless others are named.
func deciding() []string {
	return []string{"internal/agentrun", "internal/machine", "internal/scheduler", "internal/store/may.go", "internal/supervisor"}
}
