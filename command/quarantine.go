package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/putaway"
)

// quarantineReader reads the quarantine of an engine in one process: a client of it, or its folder.
type quarantineReader interface {
	Quarantine(ctx context.Context, cursor string) (api.QuarantinePage, error)
	QuarantinedMessage(ctx context.Context, id string) (api.Quarantined, error)
}

// quarantineDesk operates on messages there. A folder has no writer: no verb that writes takes one.
type quarantineDesk struct {
	quarantineReader
	writer *client.Client
	close  func() error
}

// Foresee says what a replay would make of a message.
func (d quarantineDesk) Foresee(ctx context.Context, l putaway.Message) (putaway.Outcome, error) {
	q, err := d.QuarantinedMessage(ctx, l.ID)
	return q.Replay, err
}

// Replay replays a message. One that is not there any more was dealt with, perhaps by an earlier try.
func (d quarantineDesk) Replay(ctx context.Context, l putaway.Message) (putaway.Outcome, error) {
	outcome, err := d.writer.ReplayQuarantined(ctx, l.ID)
	if errors.Is(err, api.ErrNoMessage) {
		return putaway.Outcome{Result: putaway.Over, Why: "it is not there any more"}, nil
	}
	return outcome, err
}

// Drop deletes a message; one that is not there any more is dropped.
func (d quarantineDesk) Drop(ctx context.Context, l putaway.Message) error {
	err := d.writer.DropQuarantined(ctx, l.ID)
	if errors.Is(err, api.ErrNoMessage) {
		return nil
	}
	return err
}

func (d quarantineDesk) Close(context.Context) error { return d.close() }

// openShelf reads the selected messages in the quarantine of an engine in one process.
func (o *putAwayOptions) openShelf(cmd *cobra.Command, d quarantineDesk) (*opened, error) {
	b := &opened{desk: d}
	read := o.readAll
	if len(o.wanted.IDs) > 0 {
		read = o.readNamed
	}
	if err := read(cmd, d, b); err != nil {
		return nil, errors.Join(failed(cmd, err), d.close())
	}
	return b, nil
}

func (o *putAwayOptions) readNamed(cmd *cobra.Command, d quarantineDesk, b *opened) error {
	for _, id := range o.wanted.IDs {
		q, err := d.QuarantinedMessage(cmd.Context(), id)
		switch {
		case errors.Is(err, api.ErrNoMessage):
		case err != nil:
			return err
		default:
			b.messages = append(b.messages, q.PutAway)
		}
	}
	return nil
}

func (o *putAwayOptions) readAll(cmd *cobra.Command, d quarantineDesk, b *opened) error {
	for cursor := ""; ; {
		page, err := d.Quarantine(cmd.Context(), cursor)
		if err != nil {
			return err
		}
		if cursor == "" && page.Dropped > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s had to make room, the oldest first, and are gone\n", thousands(int(page.Dropped), "message"))
		}
		for _, l := range page.Messages {
			switch {
			case !o.wanted.Fits(l):
			case len(b.messages) >= o.limit:
				b.more = true
				return nil
			default:
				b.messages = append(b.messages, l)
			}
		}
		if cursor = page.Cursor; cursor == "" {
			return nil
		}
	}
}
