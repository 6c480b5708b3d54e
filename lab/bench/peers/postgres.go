package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// postgres is a server of Postgres with its own defaults: fsync and synchronous_commit are on.
type postgres struct {
	server *exec.Cmd
	port   int
}

func startPostgres(ctx context.Context, p place) (*postgres, error) {
	native, err := filepath.Abs(filepath.Join(p.packages, postgresServer, "native"))
	if err != nil {
		return nil, err
	}
	if err := links(filepath.Dir(native), filepath.Join(native, "pg-symlinks.json")); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(p.dir, "pg")
	initdb := exec.CommandContext(ctx, filepath.Join(native, "bin/initdb"), "--pgdata", data, "--username", "postgres", "--auth", "trust", "--encoding", "UTF8", "--locale", "C")
	initdb.SysProcAttr = notRoot()
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	pg := &postgres{port: port, server: exec.Command(filepath.Join(native, "bin/postgres"), "-D", data, "-p", strconv.Itoa(port), "-h", "127.0.0.1", "-k", p.dir)}
	pg.server.SysProcAttr, pg.server.Dir = notRoot(), p.dir
	if err := pg.server.Start(); err != nil {
		return nil, err
	}
	if err := pg.durable(ctx); err != nil {
		return nil, errors.Join(err, pg.Close())
	}
	return pg, nil
}

// links makes the links that the package's own script would make.
func links(root, list string) error {
	text, err := os.ReadFile(list)
	if err != nil {
		return fmt.Errorf("Postgres of npm: %w", err)
	}
	var all []struct{ Source, Target string }
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	for _, l := range all {
		target := filepath.Join(root, l.Target)
		source, err := filepath.Rel(filepath.Dir(target), filepath.Join(root, l.Source))
		if err != nil {
			return err
		}
		if err := os.Symlink(source, target); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// notRoot lets a process see itself as another user than root, as whom Postgres does not run; its files stay root's.
func notRoot() *syscall.SysProcAttr {
	if os.Geteuid() != 0 {
		return nil
	}
	as := []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}}
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: as, GidMappings: as}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// durable waits for the server, and refuses one that does not flush what it commits.
func (pg *postgres) durable(ctx context.Context) error {
	var err error
	for range 300 {
		var conn *pgx.Conn
		if conn, err = pgx.Connect(ctx, pg.url("postgres")); err == nil {
			defer conn.Close(ctx)
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("connect to Postgres: %w", err)
	}
	conn, err := pgx.Connect(ctx, pg.url("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, setting := range []string{"fsync", "synchronous_commit"} {
		var is string
		if err := conn.QueryRow(ctx, "SHOW "+setting).Scan(&is); err != nil || is != "on" {
			return fmt.Errorf("%s of Postgres is %q, want on: %w", setting, is, err)
		}
	}
	return nil
}

func (pg *postgres) url(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", pg.port, database)
}

func (pg *postgres) Close() error {
	if err := pg.server.Process.Signal(os.Interrupt); err != nil { // fast shutdown
		return err
	}
	return pg.server.Wait()
}
