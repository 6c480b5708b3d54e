package job

// The levels of Job.Needs that this release gives. A job that does not use the features of a level does not need it, so
// that the release before can go on with it.
const (
	// LevelWaits: its workflow has a feature that came with steps that wait or take long, or one of its steps was completed
	// from outside.
	LevelWaits = 2
	// LevelRedefined: the job was moved to another definition, or given another input, and a part of its former state
	// decides still: an undo with the input that its step had, a step with earlier completion tokens that are void.
	LevelRedefined = 3
	// LevelInline: an attempt of it was inline. A release without them would send its task as well.
	LevelInline = 4
	// LevelChained: its store keeps details of its steps that the stored job does not name itself, and gives it this level.
	// A release without chains would take the job for damaged.
	LevelChained = 5
	// LevelChildren: a step of it is done by a job of its own. A release without them would send a task for it.
	LevelChildren = 6
	// LevelMaps: it has a step with a map, or does items of one. A release without them would do all items at once.
	LevelMaps = 7
	// LevelGates: an attempt of it stands before a gate. A release without gates would take it for one whose task is lost.
	LevelGates = 8
)
