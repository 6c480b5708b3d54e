package jobformat

// The numbers of the fields, as job.proto gives them.
const (
	jobFormat        = 1
	jobCreatedAt     = 2
	jobDefinitionHex = 3
	jobInputHashHex  = 4
	jobDesired       = 5
	jobRound         = 6
	jobBirthHex      = 7
	jobSecret        = 8
	jobInputInline   = 9
	jobTransitions   = 10
	jobNames         = 11
	jobSummaries     = 12
	jobActivities    = 13
	jobNumbers       = 14
	jobSeq           = 15
	jobNeeds         = 16
	jobNamesAt       = 17
	jobDetailsAt     = 18
	jobDefinition    = 19
	jobInputHash     = 20
	jobBirth         = 21
	jobInputRef      = 22
	jobInputBytes    = 23
	jobDeadline      = 24
	jobFinishedAt    = 25
	jobReason        = 26
	jobRequests      = 27
	jobPausedAt      = 28
	jobStartAt       = 29
	jobReplyTo       = 30
	jobIncarnation   = 31
	jobUntold        = 32
	jobRemindAt      = 33
	jobTellTries     = 34
	jobTellAt        = 35
	jobUnheard       = 36
	jobRequestedBy   = 37
	jobSteps         = 38
	jobRoundsAgain   = 39
	jobAnotherRound  = 40
	jobNextRoundAt   = 41
	jobHistoryCount  = 42
	jobHistoryHead   = 43
	jobHistoryFirsts = 44
	jobGone          = 50
	jobTimeout       = 51
	jobHeldBy        = 55
	jobHeldReason    = 56
	jobPausedToo     = 57
	jobTenant        = 58
	jobLabels        = 59
	jobTrace         = 65
	jobExpectBy      = 68
	jobWarnAt        = 69
	jobSpentData     = 80
	jobSpentWork     = 81
	jobChanges       = 84
	jobChangesBrief  = 85
	jobFormer        = 88
	jobAnswers       = 89
	jobFirstReason   = 90
	jobRoundAsked    = 91

	stepIndex = 1

	actAt             = 1
	actStartedAt      = 2
	actFinishedAt     = 3
	actOutputInline   = 4
	actCause          = 5
	actLookAt         = 6
	actOpenedAt       = 7
	actError          = 8
	actOutputRef      = 9
	actOutputBytes    = 10
	actOwnRefHex      = 11
	actOwnRef         = 12
	actClosing        = 13
	actSilentAttempt  = 14
	actSilentLockedBy = 15
	actSilentStarted  = 16
	actSilentComplete = 17
	actBy             = 18
	actWentTo         = 19
	actRepeats        = 20
	actRepeatSince    = 21
	actRepeatTries    = 22
	actSettled        = 25
	actLastStartedAt  = 26
	actFailingSince   = 27
	// Fields of an activity from here on stay with the job when its details move to an item of their own.
	actHot        = 64
	actWait       = 64
	actCompletion = 65
	actAlone      = 70
	actGeneration = 71
	actFormer     = 72
	actInline     = 73

	payloadInline = 1
	payloadRef    = 2
	payloadBytes  = 3

	waitDeadline = 1
	waitAsked    = 2
	waitHeard    = 3
	waitTries    = 4
	waitAskAt    = 5
	waitFor      = 6

	completionAnswer  = 1
	completionRequest = 2
	completionBy      = 3
	completionHeld    = 4
	completionEarly   = 5
	completionInline  = 6
	completionRef     = 7
	completionBytes   = 8
	completionError   = 9
	completionWhy     = 10

	settledRound  = 1
	settledAnswer = 2
	settledBy     = 3
	settledReason = 4
	settledAt     = 5

	errorMessage    = 1
	errorApplied    = 2
	errorRetryable  = 3
	errorRetryAfter = 4
	errorKind       = 5

	toldSeq      = 1
	toldState    = 2
	toldReason   = 3
	toldAt       = 4
	toldOperator = 5
	toldListener = 6
	toldExpectBy = 7

	changesSeq     = 1
	changesRev     = 2
	changesTries   = 3
	changesAt      = 4
	changesPending = 5

	changeOf      = 1
	changeGone    = 2
	changeFrom    = 3
	changeTo      = 4
	changeAttempt = 5
	changeRound   = 6
	changePaused  = 7
	changeAt      = 8
	changeOutcome = 9
	changeKind    = 10
	changeReason  = 11
	changeLost    = 12

	detailsFormat     = 1
	detailsCreatedAt  = 2
	detailsPlaces     = 3
	detailsActivities = 4

	namesFormat = 1
	namesNames  = 2
)
