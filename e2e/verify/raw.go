package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Two services are asked one question each. Their clients would be two dependencies, and the newest one of
// CloudWatch speaks a protocol that no stand-in does.

// raw makes a signed request to a service, and gives the body of its answer.
func (w *world) raw(ctx context.Context, service, host string, headers map[string]string, body []byte) ([]byte, error) {
	address := "https://" + host + "." + w.config.Region + ".amazonaws.com/"
	if endpoint := os.Getenv("AWS_ENDPOINT_URL"); endpoint != "" {
		address = endpoint + "/"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	credentials, err := w.config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, credentials, request, hex.EncodeToString(hash[:]), service, w.config.Region, time.Now()); err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(answer.Body)
	err = errors.Join(err, answer.Body.Close())
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %.500s", service, answer.Status, text)
	}
	return text, err
}

// counted gives the sum of a metric since the orders began.
func (w *world) counted(ctx context.Context, namespace, metric string, dimensions ...string) (float64, error) {
	form := url.Values{
		"Action": {"GetMetricStatistics"}, "Version": {"2010-08-01"}, "Namespace": {namespace}, "MetricName": {metric}, "Statistics.member.1": {"Sum"},
		"StartTime": {w.began.UTC().Truncate(time.Minute).Format(time.RFC3339)}, "EndTime": {time.Now().UTC().Format(time.RFC3339)}, "Period": {"60"},
	}
	for i := 0; i+1 < len(dimensions); i += 2 {
		prefix := "Dimensions.member." + strconv.Itoa(i/2+1)
		form.Set(prefix+".Name", dimensions[i])
		form.Set(prefix+".Value", dimensions[i+1])
	}
	body, err := w.raw(ctx, "monitoring", "monitoring", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, []byte(form.Encode()))
	if err != nil {
		return 0, err
	}
	var answer struct {
		Sums []float64 `xml:"GetMetricStatisticsResult>Datapoints>member>Sum"`
	}
	if err := xml.Unmarshal(body, &answer); err != nil {
		return 0, fmt.Errorf("CloudWatch answers %.300s: %w", body, err)
	}
	sum := 0.0
	for _, one := range answer.Sums {
		sum += one
	}
	return sum, nil
}

// retained are the outputs of a stack that say what it does not delete.
func (w *world) retained(ctx context.Context, name string) (map[string]string, error) {
	if name != stackName {
		return nil, nil
	}
	return w.outputs(ctx, name)
}

// deleteRetained deletes the table, and schedules the deletion of the key, which cannot be had sooner than in
// seven days.
func (w *world) deleteRetained(ctx context.Context, outputs map[string]string) error {
	var wrong []error
	if table := outputs["TableName"]; table != "" {
		_, err := dynamodb.NewFromConfig(w.config).DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(table)})
		wrong = append(wrong, err)
	}
	if key := outputs["KeyArn"]; key != "" {
		_, err := w.raw(ctx, "kms", "kms", map[string]string{
			"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "TrentService.ScheduleKeyDeletion",
		}, fmt.Appendf(nil, `{"KeyId":%q,"PendingWindowInDays":7}`, key))
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}
