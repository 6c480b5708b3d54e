package thief

import (
	"context"
	"net/http"
	"net/http/httptest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	bustypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/makegood-dev/makegood/lab/testkit/iam"
)

// World is the stack that thieves are in.
func World() iam.World {
	return iam.World{
		Region: "eu-central-1", Account: "123456789012", Stack: "shop-prod", Names: map[string]string{"Table": "shop-prod-jobs", "Payloads": "shop-payloads"},
	}
}

// clients are the SDK's, with the credentials of a role. What they ask is judged, and goes nowhere.
type clients struct {
	ctx context.Context
	db  *dynamodb.Client
	mq  *sqs.Client
	s3  *s3.Client
	sns *sns.Client
	bus *eventbridge.Client
	ssm *ssm.Client
	// ask is for what no client of ours asks.
	ask func(iam.Ask) error
}

// before lets a judge answer.
type before struct{ judge *iam.Judge }

func (b before) RoundTrip(r *http.Request) (*http.Response, error) {
	recorded := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	b.judge.ServeHTTP(recorded, r)
	return recorded.Result(), nil
}

func clientsOf(ctx context.Context, role string, judge *iam.Judge) clients {
	c := aws.Config{
		Region: World().Region, HTTPClient: &http.Client{Transport: before{judge}}, BaseEndpoint: aws.String("http://aws"),
		Credentials: credentials.NewStaticCredentialsProvider(role, "secret", ""), RetryMaxAttempts: 1,
	}
	ask := func(a iam.Ask) error {
		if !judge.Policies.May(role, a) {
			return errDenied
		}
		return nil
	}
	return clients{
		ask: ask, ctx: ctx, db: dynamodb.NewFromConfig(c), mq: sqs.NewFromConfig(c), sns: sns.NewFromConfig(c), bus: eventbridge.NewFromConfig(c), ssm: ssm.NewFromConfig(c),
		s3: s3.NewFromConfig(c, func(o *s3.Options) { o.UsePathStyle = true }),
	}
}

// request is what somebody tries.
type request func(c clients) error

var table = aws.String(World().Names["Table"])

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// key is that of an item; its sort key matters to nobody here.
func key(pk string) item { return item{"PK": text(pk), "SK": text("x")} }

// get reads an item whole.
func get(pk string) request {
	return func(c clients) error {
		_, err := c.db.GetItem(c.ctx, &dynamodb.GetItemInput{TableName: table, Key: key(pk)})
		return err
	}
}

// update sets attributes of an item.
func update(pk string, attributes ...string) request {
	return func(c clients) error {
		in := &dynamodb.UpdateItemInput{TableName: table, Key: key(pk), ExpressionAttributeNames: map[string]string{}, ExpressionAttributeValues: item{":v": text("x")}}
		set := ""
		for _, name := range attributes {
			in.ExpressionAttributeNames["#"+name] = name
			set += ", #" + name + " = :v"
		}
		in.UpdateExpression = aws.String("SET " + set[2:])
		_, err := c.db.UpdateItem(c.ctx, in)
		return err
	}
}

// put writes an item whole, with these attributes.
func put(pk string, attributes ...string) request {
	return func(c clients) error {
		it := key(pk)
		for _, name := range attributes {
			it[name] = text("x")
		}
		_, err := c.db.PutItem(c.ctx, &dynamodb.PutItemInput{TableName: table, Item: it})
		return err
	}
}

func remove(pk string) request {
	return func(c clients) error {
		_, err := c.db.DeleteItem(c.ctx, &dynamodb.DeleteItemInput{TableName: table, Key: key(pk)})
		return err
	}
}

// query lists the items under a partition key of the table, or of an index.
func query(index, pk string) request {
	return func(c clients) error {
		in := &dynamodb.QueryInput{
			TableName: table, KeyConditionExpression: aws.String("#p = :p"), ExpressionAttributeNames: map[string]string{"#p": "PK"},
			ExpressionAttributeValues: item{":p": text(pk)},
		}
		if index != "" {
			in.IndexName, in.ExpressionAttributeNames, in.ExpressionAttributeValues = &index, map[string]string{"#p": "Shard"}, item{":p": &types.AttributeValueMemberN{Value: pk}}
		}
		_, err := c.db.Query(c.ctx, in)
		return err
	}
}

// scan reads the table through, all of it or these attributes.
func scan(attributes ...string) request {
	return func(c clients) error {
		in := &dynamodb.ScanInput{TableName: table}
		if len(attributes) > 0 {
			in.Select, in.ExpressionAttributeNames = types.SelectSpecificAttributes, map[string]string{}
			shown := ""
			for _, name := range attributes {
				in.ExpressionAttributeNames["#"+name] = name
				shown += ", #" + name
			}
			in.ProjectionExpression = aws.String(shown[2:])
		}
		_, err := c.db.Scan(c.ctx, in)
		return err
	}
}

// queueURL is that of a queue of the stack.
func queueURL(name string) *string {
	return aws.String("https://sqs.eu-central-1.amazonaws.com/" + World().Account + "/" + World().Stack + "-" + name)
}

func send(queue string) request {
	return func(c clients) error {
		_, err := c.mq.SendMessage(c.ctx, &sqs.SendMessageInput{QueueUrl: queueURL(queue), MessageBody: aws.String("x")})
		return err
	}
}

func receive(queue string) request {
	return func(c clients) error {
		_, err := c.mq.ReceiveMessage(c.ctx, &sqs.ReceiveMessageInput{QueueUrl: queueURL(queue)})
		return err
	}
}

func depth(queue string) request {
	return func(c clients) error {
		_, err := c.mq.GetQueueAttributes(c.ctx, &sqs.GetQueueAttributesInput{QueueUrl: queueURL(queue)})
		return err
	}
}

// drop deletes a message.
func drop(queue string) request {
	return func(c clients) error {
		_, err := c.mq.DeleteMessage(c.ctx, &sqs.DeleteMessageInput{QueueUrl: queueURL(queue), ReceiptHandle: aws.String("x")})
		return err
	}
}

func secret(name string) request {
	return func(c clients) error {
		_, err := c.ssm.GetParameter(c.ctx, &ssm.GetParameterInput{Name: aws.String("/makegood/" + World().Stack + "/" + name)})
		return err
	}
}

func publish(c clients) error {
	topic := "arn:aws:sns:eu-central-1:" + World().Account + ":" + World().Stack + "-alerts"
	_, err := c.sns.Publish(c.ctx, &sns.PublishInput{TopicArn: &topic, Message: aws.String("x")})
	return err
}

func announce(c clients) error {
	bus := World().Stack
	_, err := c.bus.PutEvents(c.ctx, &eventbridge.PutEventsInput{Entries: []bustypes.PutEventsRequestEntry{{EventBusName: &bus, Detail: aws.String("{}")}}})
	return err
}

// object tries something with an object of the stack's bucket.
func object(verb, name string) request {
	bucket, whole := World().Names["Payloads"], World().Stack+"/"+name
	return func(c clients) (err error) {
		switch verb {
		case "get":
			_, err = c.s3.GetObject(c.ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &whole})
		case "put":
			_, err = c.s3.PutObject(c.ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &whole})
		case "delete":
			_, err = c.s3.DeleteObject(c.ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &whole})
		case "abort":
			_, err = c.s3.AbortMultipartUpload(c.ctx, &s3.AbortMultipartUploadInput{Bucket: &bucket, Key: &whole, UploadId: aws.String("u")})
		case "copy":
			_, err = c.s3.CopyObject(c.ctx, &s3.CopyObjectInput{Bucket: &bucket, Key: &whole, CopySource: aws.String(bucket + "/" + whole)})
		case "list":
			_, err = c.s3.ListObjectsV2(c.ctx, &s3.ListObjectsV2Input{Bucket: &bucket})
		default:
			panic("thief: object " + verb)
		}
		return err
	}
}
