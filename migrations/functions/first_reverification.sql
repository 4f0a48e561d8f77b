CREATE OR REPLACE FUNCTION reconciler.first_reverification(closed_at timestamptz) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE AS $$
-- The first rung of the slow ladder, a day later ± 20 %, so that what closed together is
-- not asked for together.
BEGIN
    RETURN closed_at + interval '1 day' * (0.8 + 0.4 * random());
END $$;
