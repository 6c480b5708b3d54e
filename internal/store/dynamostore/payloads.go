package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/makegood-dev/makegood/internal/store"
	"github.com/makegood-dev/makegood/internal/store/jobformat"
)

// PutPayload stores a payload once; see store.Payloads. It is durable when this returns.
func (s *Store) PutPayload(ctx context.Context, job, key string, value []byte) error {
	it := partKey(job, key)
	it[attrData] = blob(value)
	err := checkPayloadKey(key)
	if err == nil {
		err = s.putPart(ctx, "PutPayload", it)
	}
	return store.About(err, "put payload %s of job %s", key, job)
}

// checkPayloadKey keeps payloads from taking the place of other items of the job.
func checkPayloadKey(key string) error {
	if key == "" || key == sortJob || strings.HasPrefix(key, detailPrefix) {
		return fmt.Errorf("%q cannot be the key of a payload", key)
	}
	return nil
}

// putOnce writes an item unless it is there.
func (s *Store) putOnce(ctx context.Context, operation string, it item) error {
	_, err := s.put(ctx, operation, it, "attribute_not_exists(PK)", nil)
	if errors.Is(err, errCondition) {
		return nil
	}
	return err
}

// putPart writes a payload or detail of a job unless it is there.
func (s *Store) putPart(ctx context.Context, operation string, it item) error {
	condition, values := s.free()
	_, err := s.put(ctx, operation, s.expiring(it), condition, values)
	if errors.Is(err, errCondition) {
		return nil
	}
	return err
}

// Payload reads a payload; see store.Payloads.
func (s *Store) Payload(ctx context.Context, job, key string) ([]byte, error) {
	it, err := s.get(ctx, "Payload", partKey(job, key))
	return asBytes(it[attrData]), store.About(err, "payload %s of job %s", key, job)
}

// PutDefinition stores a definition by its hash; see store.Definitions. A table of before this format is refused.
func (s *Store) PutDefinition(ctx context.Context, name, hash string, definition []byte) error {
	body := keyItem("definition#"+hash, sortDefinition)
	body[attrData] = blob(definition)
	// The definition first: a name must lead to a definition that is there.
	err := s.putOnce(ctx, "PutDefinition", body)
	if err == nil {
		_, err = s.update(ctx, "PutCurrent", keyItem("workflow#"+name, sortDefinition), pointing(hash))
	}
	if errors.Is(err, errCondition) {
		err = errOfBefore
	}
	return store.About(err, "put definition %s of workflow %s", hash, name)
}

// pointing is the update that makes a definition the current one of a name. What a later release has put beside it
// stays, its StoreFormat, too.
func pointing(hash string) *update {
	u := newUpdate()
	u.set(u.attr(attrDefinition), "hash", text(hash))
	at := u.attr(attrFormat)
	u.sets = append(u.sets, at+" = if_not_exists("+at+", "+u.value("format", number(format))+")")
	u.when("(attribute_not_exists(" + u.attr(attrPK) + ") OR " + at + " >= :format)")
	return u
}

// Definition reads a definition; see store.Definitions.
func (s *Store) Definition(ctx context.Context, hash string) ([]byte, error) {
	it, err := s.get(ctx, "Definition", keyItem("definition#"+hash, sortDefinition))
	return asBytes(it[attrData]), store.About(err, "definition %s", hash)
}

// CurrentDefinition returns the hash that is current for a name; see store.Definitions.
func (s *Store) CurrentDefinition(ctx context.Context, name string) (string, error) {
	it, err := s.get(ctx, "CurrentDefinition", keyItem("workflow#"+name, sortDefinition))
	if err == nil && asInt(it[attrFormat]) < format {
		it, err = nil, errOfBefore
	}
	return asText(it[attrDefinition]), store.About(err, "current definition of workflow %s", name)
}

// putShape keeps the names of steps, once for all jobs that have them.
func (s *Store) putShape(ctx context.Context, names shape) error {
	if _, known := s.shapes.get(names.key); known {
		return nil
	}
	all, err := jobformat.DecodeNames(names.body)
	if err != nil {
		return err
	}
	if err := s.putOnce(ctx, "PutShape", shapeItem(names)); err != nil {
		return fmt.Errorf("put the names of steps: %w", err)
	}
	s.shapes.put(names.key, all)
	return nil
}

func shapeItem(names shape) item {
	it := keyItem(names.key, sortShape)
	it[attrData] = blob(names.body)
	return it
}

// shape reads the names of steps. store.ErrNotFound, store.ErrDamaged, store.ErrNewer.
func (s *Store) shape(ctx context.Context, key string) ([]string, error) {
	if names, known := s.shapes.get(key); known {
		return names, nil
	}
	it, err := s.get(ctx, "Shape", keyItem(key, sortShape))
	if err != nil {
		return nil, fmt.Errorf("read the names of steps: %w", err)
	}
	names, err := jobformat.DecodeNames(asBytes(it[attrData]))
	if err != nil {
		return nil, err
	}
	s.shapes.put(key, names)
	return names, nil
}
