package makegood

// Items are the items of a step with a map, counted when its job is read, from the jobs that do them. NotBegun to
// Uncounted together are All.
type Items struct {
	All int `json:"all"`
	// NotBegun have no attempt under way, and none has ended them.
	NotBegun int `json:"notBegun"`
	UnderWay int `json:"underWay"`
	Done     int `json:"done"`
	// Failed were given up: the step is done without them, where its map tolerates that.
	Failed int `json:"failed"`
	// Waiting stand before a person: the job that does them is in Error or paused.
	Waiting int `json:"waiting"`
	Undone  int `json:"undone"`
	// Uncounted are in jobs that were not read: a reading looks at some hundred jobs.
	Uncounted int `json:"uncounted"`
	// PerSecond is how many ended a second, of late; 0: none, or the step is not under way. SecondsLeft is how long the
	// rest takes at that rate; 0: not known.
	PerSecond   float64 `json:"perSecond"`
	SecondsLeft int     `json:"secondsLeft"`
	// Failures are the reasons of those that failed, the most frequent first; Stands are the jobs and items that stand
	// before a person. Both have at most 10, and the groups beyond them are left out.
	Failures []ItemGroup `json:"failures"`
	Stands   []ItemGroup `json:"stands"`
}

// ItemGroup is items with one reason, and an example of them.
type ItemGroup struct {
	Reason string `json:"reason"`
	// Kind is the kind of the error; empty: none was given.
	Kind string `json:"kind"`
	// Items is how many there are; 0: the whole Job stands, and no item of it does.
	Items int `json:"items"`
	// Index is the place of the example in the list, from 0; Job and Step are where it is done. Of a whole job Index is
	// that of its first item, and Step is empty.
	Index int    `json:"index"`
	Job   string `json:"job"`
	Step  string `json:"step"`
}

// Ended is how many of the items have ended: done, failed or undone.
func (i Items) Ended() int { return i.Done + i.Failed + i.Undone }
