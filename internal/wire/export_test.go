package wire

// MaxRemembered is the bound of a Memory, Len how much one has.
const MaxRemembered = maxRemembered

func (m *Memory) Len() int { return len(m.recent) + len(m.past) }
