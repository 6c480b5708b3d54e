package makegood

// Items are the items of a step with a map, counted when its job is read, from the jobs that do them. NotBegun to
// Uncounted together are All.
type Items struct {
	All int `json:"all"`
	// NotBegun have not ended, and have no attempt under way. UnderWay are with their agent, or wait for another try.
	NotBegun int `json:"notBegun"`
	UnderWay int `json:"underWay"`
	// Done were done by their agent, or settled by a person.
	Done int `json:"done"`
	// Failed were given up: the step is done without them, where its map tolerates that.
	Failed int `json:"failed"`
	// Waiting stand before a person: the job that does them is in Error or paused.
	Waiting int `json:"waiting"`
	Undone  int `json:"undone"`
	// Uncounted are in jobs that were not read: a reading looks at some hundred jobs.
	Uncounted int `json:"uncounted"`
	// PerSecond is the rate at which items have ended of late; 0: none has, or the step is not under way. SecondsLeft is
	// the time that the rest takes at that rate; 0: not known.
	PerSecond   float64 `json:"perSecond"`
	SecondsLeft int     `json:"secondsLeft"`
	// Failures are the reasons of failed items, the most frequent first. Stands are the items, and the whole jobs, that
	// stand before a person. Each list has at most 10 groups; others are left out.
	Failures []ItemGroup `json:"failures"`
	Stands   []ItemGroup `json:"stands"`
}

// MapEdit has the figures of a map that a person has edited while it is under way. They stand over those of its
// definition.
type MapEdit struct {
	// Concurrency is that of the map; 0: it is that of its definition. Tolerate likewise; null: it is that of its
	// definition.
	Concurrency int        `json:"concurrency"`
	Tolerate    *Tolerance `json:"tolerate"`
}

// ItemGroup is a group of items with one reason, and an example of them.
type ItemGroup struct {
	Reason string `json:"reason"`
	// Kind is the kind of the error; empty: none was given.
	Kind string `json:"kind"`
	// Items is the number of items; 0: the whole Job stands before a person, and none of its items.
	Items int `json:"items"`
	// Index is the place of the example in the list, from 0. Job and Step do it. For a whole job, Index is the place of
	// its first item, and Step is empty.
	Index int    `json:"index"`
	Job   string `json:"job"`
	Step  string `json:"step"`
}
