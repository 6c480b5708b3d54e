package localqueue

// fifo is a queue of messages, first in first out, at a constant cost a message.
type fifo struct {
	messages []*message
	// head is where the first one is; before it everything is nil.
	head int
}

// fifoSlack is how much may be empty before the head before it is worth moving the rest.
const fifoSlack = 1024

func (f *fifo) len() int { return len(f.messages) - f.head }

func (f *fifo) push(m *message) { f.messages = append(f.messages, m) }

// first returns the first ones, n at most.
func (f *fifo) first(n int) []*message { return f.messages[f.head : f.head+min(n, f.len())] }

func (f *fifo) pop() *message {
	m := f.messages[f.head]
	f.messages[f.head] = nil
	f.head++
	if f.head > fifoSlack && f.head > f.len() {
		rest := copy(f.messages, f.messages[f.head:])
		clear(f.messages[rest:])
		f.messages, f.head = f.messages[:rest], 0
	}
	return m
}

// hiddenHeap is a heap.Interface by visibleAt. Each message knows its place in it.
type hiddenHeap []*message

func (h hiddenHeap) Len() int { return len(h) }

func (h hiddenHeap) Less(i, j int) bool { return h[i].visibleAt.Before(h[j].visibleAt) }

func (h hiddenHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *hiddenHeap) Push(m any) {
	m.(*message).index = len(*h)
	*h = append(*h, m.(*message))
}

func (h *hiddenHeap) Pop() any {
	last := len(*h) - 1
	m := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	m.index = notHidden
	return m
}
