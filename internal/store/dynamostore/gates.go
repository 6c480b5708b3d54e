package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/makegood-dev/makegood/internal/job"
	"github.com/makegood-dev/makegood/internal/store"
)

var _ store.Gates = (*Store)(nil)

const (
	// gatePrefix is before an agent's name in the partition key of its gates. Permits sort before tickets, each by its
	// number, and tickets by their rank; at the gate of a value that and # come before either. No index has them, and
	// they do not expire.
	gatePrefix = "gate#"
	sortPermit = "permit#"
	sortWait   = "wait#"
	// rankEnd sorts behind all ranks, behind right behind the key before it, and valueEnd behind all values.
	rankEnd  = "~"
	behind   = "\x00"
	valueEnd = "g"
	// attrTicket is the name of a permit (store.PermitName), by which each write knows the permit that it saw, and its own.
	attrTicket = "Ticket"
	// permitsAtOnce is how many permits are read in one request with the tickets that are asked for. A gate with more
	// takes a request for each so many.
	permitsAtOnce = 50
)

// gateKey returns the partition key of a gate, and how the sort keys of its items begin.
func gateKey(gate string) (partition, sort string) {
	agent, value, valued := strings.Cut(gate, "/")
	if valued {
		value += "#"
	}
	return gatePrefix + agent, value
}

func permitKey(agent string, n int) item {
	partition, sort := gateKey(agent)
	return keyItem(partition, fmt.Sprintf("%s"+sortPermit+"%06d", sort, n))
}

func ticketKey(agent string, t job.Ticket) item {
	partition, sort := gateKey(agent)
	return keyItem(partition, sort+sortWait+t.Rank())
}

// within asks for the items of a partition between two sort keys, which are those of no items.
func within(partition, first, last string, limit int) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		KeyConditionExpression:    aws.String("PK = :gate AND SK BETWEEN :first AND :last"),
		ExpressionAttributeValues: item{":gate": text(partition), ":first": text(first), ":last": text(last)}, Limit: aws.Int32(int32(limit)),
	}
}

// Gate reads a gate; see store.Gates.
func (s *Store) Gate(ctx context.Context, agent string, most int) (g store.Gate, err error) {
	partition, sort := gateKey(agent)
	for it, err := range s.itemsOf(ctx, "Gate", within(partition, sort+sortPermit, sort+sortWait+rankEnd, min(most, scanItems)+permitsAtOnce)) {
		waits := strings.HasPrefix(asText(it[attrSK]), sort+sortWait)
		switch {
		case err != nil:
		case waits && len(g.Waiting) < most:
			var t job.Ticket
			t, err = store.DecodeTicket(asBytes(it[attrData]))
			g.Waiting = append(g.Waiting, t)
		case strings.HasPrefix(asText(it[attrSK]), sort+sortPermit):
			var p job.Permit
			p, err = store.DecodePermit(asBytes(it[attrData]))
			g.Permits = append(g.Permits, p)
		}
		if err != nil {
			return store.Gate{}, fmt.Errorf("gate of %s: %w", agent, err)
		}
		if waits && len(g.Waiting) >= most {
			break
		}
	}
	return g, nil
}

// PutPermit stores a permit; see store.Gates. A write that the SDK tries again finds its own ticket, and succeeds.
func (s *Store) PutPermit(ctx context.Context, agent string, was, is job.Permit) error {
	it := permitKey(agent, was.N)
	condition, values := "attribute_not_exists(PK)", item(nil)
	if !was.Free() {
		condition, values = "Ticket = :was", item{":was": text(store.PermitName(was))}
	}
	var old item
	var err error
	if is.Free() {
		old, err = s.remove(ctx, "PutPermit", it, condition, values)
	} else {
		it[attrTicket], it[attrData] = text(store.PermitName(is)), blob(store.EncodePermit(is))
		old, err = s.put(ctx, "PutPermit", it, condition, values)
	}
	return store.About(orConflict(err, asText(old[attrTicket]) == store.PermitName(is)), "put permit %d of %s", was.N, agent)
}

// Enter stores a ticket; see store.Gates.
func (s *Store) Enter(ctx context.Context, agent string, t job.Ticket) error {
	it := ticketKey(agent, t)
	it[attrData] = blob(store.EncodeTicket(t))
	_, err := s.put(ctx, "Enter", it, "", nil)
	return store.About(err, "ticket %s of %s", t.Rank(), agent)
}

// Leave deletes a ticket; see store.Gates. One that the SDK tries again finds none, and says so.
func (s *Store) Leave(ctx context.Context, agent string, t job.Ticket) error {
	_, err := s.remove(ctx, "Leave", ticketKey(agent, t), "attribute_exists(PK)", nil)
	if errors.Is(err, errCondition) {
		err = store.ErrNotFound
	}
	return store.About(err, "leave, ticket %s of %s", t.Rank(), agent)
}

// Behind reads a ticket; see store.Gates.
func (s *Store) Behind(ctx context.Context, agent, rank string) (t job.Ticket, err error) {
	partition, sort := gateKey(agent)
	for it, err := range s.itemsOf(ctx, "Behind", within(partition, sort+sortWait+rank+behind, sort+sortWait+rankEnd, 1)) {
		if err == nil {
			t, err = store.DecodeTicket(asBytes(it[attrData]))
		}
		if err != nil {
			return job.Ticket{}, fmt.Errorf("ticket of %s behind %s: %w", agent, rank, err)
		}
		break
	}
	return t, nil
}

// CountWaiting counts tickets; see store.Gates.
func (s *Store) CountWaiting(ctx context.Context, agent string, most int) (n int, err error) {
	partition, sort := gateKey(agent)
	pages := dynamodb.NewQueryPaginator(s.config.Client, &dynamodb.QueryInput{
		TableName: &s.config.Table, Select: types.SelectCount, Limit: aws.Int32(int32(min(most, scanItems))), ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("PK = :gate AND begins_with(SK, :wait)"),
		ExpressionAttributeValues: item{":gate": text(partition), ":wait": text(sort + sortWait)},
		ReturnConsumedCapacity:    s.returnConsumed(),
	})
	for n < most && pages.HasMorePages() {
		page, err := pages.NextPage(ctx, s.options)
		if err != nil {
			return 0, fmt.Errorf("count the tickets of %s: %w", agent, err)
		}
		s.consumed("CountWaiting", page.ConsumedCapacity)
		n += int(page.Count)
	}
	return min(n, most), nil
}

// NextGate finds a gate; see store.Gates.
func (s *Store) NextGate(ctx context.Context, agent, value string) (string, error) {
	partition, _ := gateKey(agent)
	for it, err := range s.itemsOf(ctx, "NextGate", within(partition, value+"$", valueEnd, 1)) { // $ sorts right behind #.
		if err != nil {
			return "", fmt.Errorf("the gate of %s behind %s: %w", agent, value, err)
		}
		next, _, _ := strings.Cut(asText(it[attrSK]), "#")
		return agent + "/" + next, nil
	}
	return "", nil
}
