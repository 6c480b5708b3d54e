package control

import (
	"context"

	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/internal/store"
)

// quarantinePage is the number of messages in a page of the quarantine.
const quarantinePage = 200

// errNoQuarantine says where the quarantine of a stack is.
var errNoQuarantine = notHere("the quarantine of a stack is a queue, and no door opens it: `makegood quarantine list --stack NAME` does, with your own AWS credentials")

// Quarantine reads a page of the quarantine, the oldest messages first.
func (s *Service) Quarantine(ctx context.Context, cursor string) (api.QuarantinePage, error) {
	return s.QuarantineOf(ctx, cursor, quarantinePage)
}

// QuarantineOf reads a page of at most limit messages.
func (s *Service) QuarantineOf(ctx context.Context, cursor string, limit int) (page api.QuarantinePage, err error) {
	err = s.quarantine("quarantine", func(q Quarantine) (err error) { page, err = q.Page(ctx, cursor, limit); return err })
	return page, err
}

// QuarantinedMessage reads a message in quarantine, with the expected result of a replay. Errors: api.ErrNoMessage.
func (s *Service) QuarantinedMessage(ctx context.Context, id string) (message api.Quarantined, err error) {
	err = s.quarantine("message "+id, func(q Quarantine) (err error) { message, err = q.Get(ctx, id); return err })
	return message, err
}

// ReplayQuarantined processes a message again, and deletes it after its effects are stored. Errors: api.ErrNoMessage.
func (s *Service) ReplayQuarantined(ctx context.Context, id string) (r api.Replayed, err error) {
	err = s.quarantine("replay message "+id, func(q Quarantine) (err error) { r, err = q.Replay(ctx, id); return err })
	if err == nil {
		s.parts.Logger.InfoContext(ctx, "replayed", "message", id, "result", r.Result, "by", s.by(ctx))
	}
	return r, err
}

// DropQuarantined deletes a message in quarantine. Errors: api.ErrNoMessage.
func (s *Service) DropQuarantined(ctx context.Context, id string) error {
	err := s.quarantine("drop message "+id, func(q Quarantine) error { return q.Drop(ctx, id) })
	if err == nil {
		s.parts.Logger.InfoContext(ctx, "dropped from quarantine", "message", id, "by", s.by(ctx))
	}
	return err
}

func (s *Service) quarantine(what string, do func(Quarantine) error) error {
	err := errNoQuarantine
	if s.parts.Quarantine != nil {
		err = do(s.parts.Quarantine)
	}
	return store.About(inWords(err), "%s", what)
}
